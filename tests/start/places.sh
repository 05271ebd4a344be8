# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library, script ...
# The places of the library and of the hooks, other shells, and the kits that NVFlare generates.

multiarch=$(uname -m)-linux-gnu
found() { # SCRIPT LIBRARY HOOKS COMMAND, relative to a prefix: the shell and the command find this installation
    lay_out "$@"
    finds_prefix "$@"
    add_command "$@"
    finds_prefix "$@"
}
found_by_command() { # SCRIPT LIBRARY HOOKS COMMAND
    lay_out "$@"
    add_command "$@"
    finds_prefix "$@"
}
add_command() { # SCRIPT LIBRARY HOOKS COMMAND
    mkdir -p "$(dirname "$prefix/$4")"
    cp "$ROOT/target/release/flarena" "$prefix/$4"
}
lay_out() { # SCRIPT LIBRARY HOOKS
    prefix=$SCRATCH/prefix
    rm -rf "$prefix"
    mkdir -p "$(dirname "$prefix/$1")" "$(dirname "$prefix/$2")" "$prefix/$3"
    cp "$script" "$prefix/$1"
    cp "$library" "$prefix/$2"
    : >"$prefix/$3/sitecustomize.py"
}
finds_prefix() { # SCRIPT LIBRARY HOOKS
    local output
    output=$(without_preload -u PYTHONPATH FLARENA_ALLOCATOR=jemalloc dash "$prefix/$1" -- "$SHOW" LD_PRELOAD PYTHONPATH 2>&1)
    printf '%s\n' "$output"
    [ "$(realpath "$(sed -n 's/^LD_PRELOAD=//p' <<<"$output")")" = "$prefix/$2" ]
    [ "$(realpath "$(sed -n 's/^PYTHONPATH=//p' <<<"$output")")" = "$prefix/$3" ]
}
check "the build of a checkout is found" found sub_start.sh target/release/libflarena.so src/python/flarena/hooks target/release/flarena
check "an unpacked archive is found" found sub_start.sh lib/libflarena.so lib/hooks bin/flarena
check "a library next to the script is found" found sub_start.sh libflarena.so flarena/hooks flarena
check "a wheel's library is found" found bin/sub_start.sh lib/python3.11/site-packages/flarena/libflarena.so lib/python3.11/site-packages/flarena/hooks bin/flarena
check "a package's library is found" found bin/sub_start.sh "lib/$multiarch/libflarena.so" share/flarena/python/flarena/hooks bin/flarena
check "the Debian package's library is found by its command" found_by_command share/flarena/sub_start.sh "lib/$multiarch/libflarena.so" \
    share/flarena/python/flarena/hooks bin/flarena
check "a prefix with lib64 is found" found bin/sub_start.sh lib64/libflarena.so share/flarena/python/flarena/hooks bin/flarena
# Each place below a prefix has a library. The library that is found is removed, until none is found.
same_search() {
    local place=$SCRATCH/search way dir found
    for way in shell command; do
        rm -rf "$place"
        for dir in bin "bin/$multiarch" bin/lib bin/target/release . lib "lib/$multiarch" lib64 lib/python3.11/site-packages/flarena \
            lib/python3.11/dist-packages/flarena lib64/python3.12/site-packages/flarena; do
            mkdir -p "$place/$dir"
            cp "$library" "$place/$dir/"
        done
        cp "$script" "$place/bin/"
        [ "$way" = shell ] || cp "$ROOT/target/release/flarena" "$place/bin/"
        while found=$(without_preload "$place/bin/sub_start.sh" -- printenv LD_PRELOAD 2>/dev/null) && [[ $found == "$place"/* ]]; do
            echo "$found"
            rm "$found"
        done >"$SCRATCH/search-$way"
    done
    cat "$SCRATCH/search-command"
    [ "$(wc -l <"$SCRATCH/search-command")" -eq 11 ]
    diff "$SCRATCH/search-command" "$SCRATCH/search-shell"
}
check "the command and the shell search the same places in the same order" same_search
through_a_link() {
    found sub_start.sh lib/libflarena.so lib/hooks bin/flarena
    mkdir -p "$SCRATCH/link"
    ln -sf "$SCRATCH/prefix/sub_start.sh" "$SCRATCH/link/start"
    without_preload "$SCRATCH/link/start" -- "$SHOW" LD_PRELOAD | grep -qx "LD_PRELOAD=$SCRATCH/prefix/lib/libflarena.so"
}
check "a link to the script finds the library beside the script" through_a_link

transcript() { # runs the script with $shell, in the ways in which shells could differ
    start NVFLARE_ENABLE_JEMALLOC_PRELOAD=true NVFLARE_CLIENT_MEMORY_PROFILE=yes LD_PRELOAD="$SCRATCH/one.so $SCRATCH/two.so" -- \
        -- "$SHOW" LD_PRELOAD PYTHONPATH MALLOC_ARENA_MAX NVFLARE_ENABLE_JEMALLOC_PRELOAD
    start FLARENA_LIB="$bad/arch.so" FLARENA_ALLOCATOR=JeMalloc -- "$client" "a  b" '*'
    start FLARENA_LIB="$bad/new.so" MALLOC_ARENA_MAX=5 -- "$server"
}
same_in() { # SHELL [PACKAGE]
    need "${1%% *}" "${2:-${1%% *}}" || { echo "no ${1%% *}" && exit 77; }
    # The sizes in the library's markers differ from run to run.
    diff <(shell=dash transcript 2>&1 | grep -v '^\[RSS\]') <(shell=$1 transcript 2>&1 | grep -v '^\[RSS\]')
}
check "busybox's shell prints the same as dash" same_in "busybox sh" busybox
check "bash prints the same as dash" same_in bash
check "bash in POSIX mode prints the same as dash" same_in "bash --posix"

give_up() { # STATUS REASON
    echo "$2"
    exit "$1"
}
environment_of() { # NVFLARE_VERSION server|site-1 ARENAS ROLE MODULE: the python3 of a real kit gets these
    local kits output
    kits=$(real_kits "$1") || give_up $? "$kits"
    output=$(start NVFLARE_ENABLE_JEMALLOC_PRELOAD=true PATH="$(printing_python):$PATH" -- "$kits/$2/startup" --once 2>&1)
    printf '%s\n' "$output"
    grep -qx "seen: LD_PRELOAD=$library" <<<"$output"
    grep -qx "seen: MALLOC_ARENA_MAX=$3" <<<"$output"
    grep -qx "seen: FLARENA_ROLE=$4" <<<"$output"
    grep -qx "seen: PYTHONPATH=/local/custom:$SCRATCH/plain/hooks" <<<"$output"
    grep -qx "seen: nvflare.private.fed.app.$5" <<<"$output"
}
for version in 2.7.2 2.9.0; do
    check "the client kit of NVFlare $version starts its program with 2 arenas and one allocator" \
        environment_of "$version" site-1 2 client client.client_train
    check "the server kit of NVFlare $version starts its program with 4 arenas and one allocator" \
        environment_of "$version" server 4 server server.server_train
done

supervised() { # the kit's supervisor starts its program; shutdown.fl stops it, as the admin console does
    local kits pid
    kits=$(real_kits 2.9.0) || give_up $? "$kits"
    start PATH="$(printing_python):$PATH" -- "$kits/site-1/startup" >"$SCRATCH/loop.log" 2>&1 &
    pid=$!
    : >"$kits/site-1/shutdown.fl"
    timeout 200 tail --pid="$pid" -f /dev/null || kill "$pid"
    cat "$SCRATCH/loop.log"
    grep -qx "seen: LD_PRELOAD=$library" "$SCRATCH/loop.log"
    grep -q "shutdown" "$SCRATCH/loop.log"
    [ ! -e "$kits/site-1/daemon_pid.fl" ]
}
check "a kit's supervisor starts its program and ends on shutdown.fl" supervised

in_background() { # the kit's start.sh returns while its supervisor still runs
    local kits pid
    kits=$(real_kits 2.9.0) || give_up $? "$kits"
    rm -f "$kits/site-1/shutdown.fl"
    start PATH="$(printing_python):$PATH" -- "$kits/site-1/startup/start.sh" >"$SCRATCH/background.log" 2>&1
    timeout 120 sh -c "until [ -s '$kits/site-1/daemon_pid.fl' ]; do sleep 0.1; done"
    pid=$(cat "$kits/site-1/daemon_pid.fl")
    kill -0 "$pid"
    : >"$kits/site-1/shutdown.fl"
    timeout 200 tail --pid="$pid" -f /dev/null || kill "$pid"
    cat "$SCRATCH/background.log"
    grep -qx "seen: LD_PRELOAD=$library" "$SCRATCH/background.log"
}
check "a kit's start.sh starts its supervisor in the background and returns at once" in_background
