# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library, client, jemalloc ...
# A table of cases that start in two ways: with `flarena run`, and with the shell functions of sub_start.sh where no
# command works. The known differences of the shell:
# - For a library that cannot be loaded it prints the loader's reason. The command names architecture and glibc.
# - It names a system jemalloc as the loader does (libjemalloc.so.2), not by its path.
# - It recognizes a musl program, and no other program that cannot load the library. It does not follow `#!`.
# - It does not suggest a setting for a misspelt one.
# - It always joins LD_PRELOAD with colons.

mkdir -p "$SCRATCH/alone"
cp "$script" "$SCRATCH/alone/sub_start.sh"
start_alone() { script=$SCRATCH/alone/sub_start.sh start "$@"; } # there is no command beside this copy
# The reasons of the loader and of the command differ.
outcome() { # start|start_alone ARGUMENT...: the output of the program, the messages, and the exit status
    { "$@" 2>&1 || echo "status $?"; } | grep -v '^\[RSS\]' | sed 's/ cannot be used: .*;/ cannot be used;/; s,^.*not found$,not found,
        s/^\(flarena: there is no setting [A-Z_]*\);.*/\1/'
}
NAMES=(LD_PRELOAD PYTHONPATH MALLOC_ARENA_MAX MALLOC_CONF FLARENA_INHERITED FLARENA_ROLE NVFLARE_ENABLE_JEMALLOC_PRELOAD ARROW_DEFAULT_MEMORY_POOL
    MIMALLOC_PURGE_DELAY)
both_ways() { # EXPECTED-LINE [NAME=VALUE...] [-- ARGUMENT...]: both outcomes are equal and have this line once
    local expected=$1
    shift
    [[ " $* " == *" -- "* ]] || set -- "$@" -- -- "$SHOW" "${NAMES[@]}"
    outcome start "$@" >"$SCRATCH/by-command"
    outcome start_alone "$@" >"$SCRATCH/by-shell"
    cat "$SCRATCH/by-command"
    [ "$(grep -cxF -- "$expected" "$SCRATCH/by-command")" -eq 1 ]
    [[ $* != *FLARENA_LOG=[Oo][Ff][Ff]* ]] || ! grep '^flarena: ' "$SCRATCH/by-command" || return 1
    diff "$SCRATCH/by-command" "$SCRATCH/by-shell"
}
# A program that prints a variable.
# shellcheck disable=SC2016  # the program expands it
printf '#!/bin/sh\nexec "$SHOW" MALLOC_ARENA_MAX\n' >"$SCRATCH/nvflare"
chmod +x "$SCRATCH/nvflare"
# An ELF program with the name of a free-threaded Python. It runs its arguments.
cp "$(command -v env)" "$SCRATCH/python3.14t"
ln -s python3.14t "$SCRATCH/my-python"
# The table uses these.
# shellcheck disable=SC2034
server_module=nvflare.private.fed.app.server.server_train
# shellcheck disable=SC2034
job_module=nvflare.private.fed.app.client.worker_process
# shellcheck disable=SC2034
without="; starting with the system's malloc"

while IFS='|' read -r case expected settings; do
    # shellcheck disable=SC2086  # a list of settings
    check "command and shell, $case" eval "both_ways \"$expected\" $settings"
done <<'END'
a plain command|LD_PRELOAD=$library
older preloads, separated by colons or spaces, stay after the library|LD_PRELOAD=$library:$SCRATCH/one.so:$SCRATCH/two.so:$SCRATCH/one.so|LD_PRELOAD="$SCRATCH/one.so:$SCRATCH/two.so $SCRATCH/one.so"
a start within a start names the library once|LD_PRELOAD=$library|-- -- "$script" -- "$SHOW" LD_PRELOAD
another libflarena.so is removed|LD_PRELOAD=$library:$SCRATCH/one.so|LD_PRELOAD="$LIB:$SCRATCH/one.so"
jemalloc by NVFlare's switch|NVFLARE_ENABLE_JEMALLOC_PRELOAD=1|NVFLARE_ENABLE_JEMALLOC_PRELOAD=true PYTHONPATH=/mine
jemalloc by name brings the hooks|PYTHONPATH=$SCRATCH/plain/hooks:/mine|FLARENA_GC=off FLARENA_ALLOCATOR=JeMalloc PYTHONPATH=/mine
hooks that are already in PYTHONPATH|PYTHONPATH=$SCRATCH/plain/hooks:/mine|FLARENA_ALLOCATOR=jemalloc PYTHONPATH=/mine:$SCRATCH/plain/hooks
markers bring the hooks|PYTHONPATH=$SCRATCH/plain/hooks|FLARENA_GC=off NVFLARE_CLIENT_MEMORY_PROFILE=yes
collections bring the hooks|PYTHONPATH=$SCRATCH/plain/hooks|FLARENA_GC=auto
sites bring the hooks|PYTHONPATH=$SCRATCH/plain/hooks|FLARENA_GC=off FLARENA_SITES=on NVFLARE_CLIENT_MEMORY_PROFILE=off
rounds of cleanup bring the hooks|PYTHONPATH=$SCRATCH/plain/hooks|FLARENA_GC=off NVFLARE_CLIENT_MEMORY_GC_ROUNDS=2
no hooks without a reason|PYTHONPATH is unset|FLARENA_GC=No FLARENA_SITES=off NVFLARE_CLIENT_MEMORY_GC_ROUNDS=0
a marker file without markers is noted|flarena: FLARENA_MARKER_FILE has no effect: markers are off without NVFLARE_CLIENT_MEMORY_PROFILE=1|FLARENA_MARKER_FILE=/tmp/x
a marker file with markers, or with markers off, is not noted|PYTHONPATH is unset|FLARENA_GC=off FLARENA_MARKER_FILE=/tmp/x NVFLARE_CLIENT_MEMORY_PROFILE=off
a CUDA cache without rounds is noted|flarena: NVFLARE_CUDA_EMPTY_CACHE=true: flarena empties no CUDA cache, because NVFLARE_CLIENT_MEMORY_GC_ROUNDS is 0|NVFLARE_CUDA_EMPTY_CACHE=Yes
a probe of the parent does not replace the program|FLARENA_PROBE is unset|FLARENA_PROBE=1 -- -- "$SHOW" FLARENA_PROBE
glibc by name wins, and without hooks PYTHONPATH is unchanged|PYTHONPATH=/mine|PYTHONPATH=/mine FLARENA_GC=off FLARENA_ALLOCATOR=glibc NVFLARE_ENABLE_JEMALLOC_PRELOAD=true
Arrow's buffers come from malloc|ARROW_DEFAULT_MEMORY_POOL=system
the user's pool for Arrow|ARROW_DEFAULT_MEMORY_POOL=jemalloc|ARROW_DEFAULT_MEMORY_POOL=jemalloc
pools with FLARENA_POOLS=off|ARROW_DEFAULT_MEMORY_POOL is unset|FLARENA_POOLS=Off
no library, no change for Arrow|ARROW_DEFAULT_MEMORY_POOL is unset|FLARENA_LIB=/nowhere
the setting for Arrow is printed|flarena: ARROW_DEFAULT_MEMORY_POOL=system: Arrow's buffers come from malloc (FLARENA_POOLS=off leaves it alone)|FLARENA_LOG=info FLARENA_ALLOCATOR=glibc -- -- true
a free-threaded Python|MIMALLOC_PURGE_DELAY=0|-- -- "$SCRATCH/python3.14t" "$SHOW" MIMALLOC_PURGE_DELAY
a free-threaded Python behind a link|MIMALLOC_PURGE_DELAY=0|-- -- "$SCRATCH/my-python" "$SHOW" MIMALLOC_PURGE_DELAY
the user's delay for mimalloc|MIMALLOC_PURGE_DELAY=5|MIMALLOC_PURGE_DELAY=5 -- -- "$SCRATCH/python3.14t" "$SHOW" MIMALLOC_PURGE_DELAY
the library is named|flarena: preloading $library|FLARENA_ALLOCATOR=glibc -- -- true
the library is named, with FLARENA_LOG=info|flarena: preloading $library|FLARENA_LOG=info -- -- true
a role without a library|MALLOC_ARENA_MAX=4|FLARENA_LIB=/nowhere FLARENA_ROLE=Server
no role and no library|MALLOC_ARENA_MAX is unset|FLARENA_LIB=/nowhere
the user's arenas|MALLOC_ARENA_MAX=8|FLARENA_LIB=/nowhere FLARENA_ROLE=client MALLOC_ARENA_MAX=8
the user's arenas in GLIBC_TUNABLES|MALLOC_ARENA_MAX is unset|FLARENA_LIB=/nowhere FLARENA_ROLE=client GLIBC_TUNABLES=glibc.malloc.arena_max=8
an outer flarena's default is replaced, its other fields stay|FLARENA_INHERITED=arena_max=2;warned=77;told=5|FLARENA_LIB=/nowhere FLARENA_ROLE=client MALLOC_ARENA_MAX=4 "FLARENA_INHERITED=warned=77;arena_max=4;told=5"
the user changed an outer flarena's default|FLARENA_INHERITED=arena_max=4|FLARENA_LIB=/nowhere FLARENA_ROLE=client MALLOC_ARENA_MAX=3 FLARENA_INHERITED=arena_max=4
NVFlare's server by its command line|MALLOC_ARENA_MAX=4|FLARENA_LIB=/nowhere -- -- sh -c '"$SHOW" MALLOC_ARENA_MAX' -m $server_module
NVFlare's job by its command line|MALLOC_ARENA_MAX=2|FLARENA_LIB=/nowhere -- -- sh -c '"$SHOW" MALLOC_ARENA_MAX' -m $job_module
NVFlare's simulator by its command|MALLOC_ARENA_MAX=4|FLARENA_LIB=/nowhere -- -- "$SCRATCH/nvflare" simulator
a preload of a missing library is removed|LD_PRELOAD=$SCRATCH/one.so|FLARENA_LIB=/nowhere LD_PRELOAD="$library $SCRATCH/one.so"
the only preload is removed|LD_PRELOAD is unset|FLARENA_LIB=/nowhere LD_PRELOAD=$library
a missing library|flarena: /nowhere cannot be used$without|FLARENA_LIB=/nowhere
a library that is not flarena's|flarena: $bad/foreign.so cannot be used$without|FLARENA_LIB=$bad/foreign.so
a misspelt setting|flarena: there is no setting FLARENA_ALOCATOR|FLARENA_ALOCATOR=x
a misspelt switch of NVFlare's|flarena: there is no setting NVFLARE_ENABLE_JEMALOC_PRELOAD|NVFLARE_ENABLE_JEMALOC_PRELOAD=true
a misspelt setting, with FLARENA_LOG=off|LD_PRELOAD=$library|FLARENA_ALOCATOR=x FLARENA_LOG=off
a missing library, with FLARENA_LOG=off|LD_PRELOAD is unset|FLARENA_LIB=/nowhere FLARENA_LOG=OFF
a client's kit|MALLOC_ARENA_MAX=2|NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$client" --verify "a b"
a server's kit|MALLOC_ARENA_MAX=4|-- "$server"
a client's kit by its start.sh|MALLOC_ARENA_MAX=2|-- "$client/start.sh"
a client's kit without a library|FLARENA_ROLE=client|FLARENA_LIB=/nowhere -- "$client"
an exit status|status 7|-- -- sh -c 'exit 7'
END

mkdir -p "$SCRATCH/beside/bin"
cp "$script" "$SCRATCH/beside/sub_start.sh"
beside() { # ANSWER: of the command beside the script to --version
    # shellcheck disable=SC2016  # the command expands it
    printf '#!/bin/sh\n[ "$1" = --version ] && echo "%s" && exit\necho "command: $*"\n' "$1" >"$SCRATCH/beside/bin/flarena"
    chmod +x "$SCRATCH/beside/bin/flarena"
    script=$SCRATCH/beside/sub_start.sh start FLARENA_LOG=off -- -- echo "a b"
}
check_output "a command that works starts the job" "command: run --verbose -- echo a b" beside "flarena 0.1.0"
check_output "a command that does not work is not used" "a b" beside "cannot execute"
