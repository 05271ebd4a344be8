#!/bin/sh
# Start a program, or the startup kit of an NVFlare site, with flarena preloaded.
#
# It finds paths, sets the environment and execs. Policy lives in the library; here is only what
# has to be decided before a program runs. Whatever is wrong with the library, the job starts.
set -u

usage() {
    cat <<'END'
usage: sub_start.sh KIT/startup [ARGUMENT...]   start a provisioned kit, arguments unchanged
       sub_start.sh -- COMMAND [ARGUMENT...]    start any command

NVFLARE_ENABLE_JEMALLOC_PRELOAD=true   serve the job with jemalloc instead of glibc's malloc
NVFLARE_CLIENT_MEMORY_PROFILE=1        mark the resident memory of each stage
FLARENA_LIB=/path/libflarena.so        use this library and look nowhere else
END
}

refuse() {
    printf 'sub_start.sh: %s\n' "$*" >&2
    exit 2
}

say() { [ "${FLARENA_LOG:-}" = off ] || printf 'flarena: %s\n' "$*" >&2; }

is_on() {
    case $1 in
    1 | [Tt][Rr][Uu][Ee] | [Yy][Ee][Ss] | [Oo][Nn]) ;;
    *) return 1 ;;
    esac
}

wants_jemalloc() {
    case ${FLARENA_ALLOCATOR:-} in
    [Jj][Ee][Mm][Aa][Ll][Ll][Oo][Cc]) ;;
    [Gg][Ll][Ii][Bb][Cc]) return 1 ;;
    *) is_on "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" ;;
    esac
}

# PATH in front of a list, unless it is there already.
put_first() {
    case $2 in
    "$1" | "$1"[:\ ]*) printf '%s\n' "$2" ;;
    *) printf '%s\n' "$1${2:+:$2}" ;;
    esac
}

first_file() {
    for file; do
        [ -f "$file" ] && printf '%s\n' "$file" && return
    done
    return 1
}

find_library() {
    for dir in "$here" "$here/lib" "$here/target/release" "$here/.." "$here/../lib" "$here/../lib/$multiarch" \
        "$here/../lib64" "$here"/../lib*/python3*/*-packages/flarena \
        /usr/local/lib "/usr/lib/$multiarch" /usr/lib64 /usr/lib /opt/flarena/lib; do
        first_file "$dir/libflarena.so" && return
    done
}

# Preloaded programs run in other directories.
absolute() {
    case $1 in
    '' | /*) printf '%s\n' "$1" ;;
    *) printf '%s/%s\n' "$(pwd)" "$1" ;;
    esac
}

# The constructor of a library that works answers "flarena VERSION" and ends the process.
probe() { LD_PRELOAD=$1 FLARENA_PROBE=1 /bin/sh -c :; }

# Why the library cannot be preloaded, or nothing. ld.so only warns when it cannot load a
# preload, and LD_PRELOAD has no way to quote a separator: both would lose flarena in silence.
library_fault() {
    case $1 in
    '') echo "libflarena.so was not found (FLARENA_LIB can name it)" && return ;;
    *[:\ $]*) echo "LD_PRELOAD cannot hold a path with a space, a colon or a dollar sign: $1" && return ;;
    esac
    [ -f "$1" ] || { echo "there is no file $1" && return; }
    [ -r "$1" ] || { echo "$1 cannot be read" && return; }
    answer=$(probe "$1" 2>/dev/null) && case $answer in
    *"$newline"*) ;;
    "flarena "?*) return ;;
    esac
    reason=$(probe "$1" 2>&1 >/dev/null)
    reason=${reason%%"$newline"*}
    echo "$1 cannot be used: ${reason:-it does not answer as libflarena.so does}"
}

# musl's loader stops the program at a library made for glibc, so look at its ELF interpreter.
uses_musl() {
    dd if="$1" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c '[:graph:]' '\n' | grep -q '^/.*ld-musl-'
}

# Why nothing may be preloaded into COMMAND, or nothing.
platform_fault() {
    system=$(uname -s)
    [ "$system" = Linux ] || { echo "$system has no glibc" && return; }
    for program in /bin/sh "$(command -v "$1")"; do
        uses_musl "$program" && echo "$program uses musl, not glibc" && return
    done
}

find_system_jemalloc() {
    for dir in "/usr/lib/$multiarch" "/lib/$multiarch" /usr/lib64 /lib64 /usr/lib /lib \
        "/usr/local/lib/$multiarch" /usr/local/lib64 /usr/local/lib; do
        for file in "$dir/libjemalloc.so.2" "$dir/libjemalloc.so.1" "$dir/libjemalloc.so"; do
            [ -f "$file" ] && [ -z "$(LD_PRELOAD=$file /bin/sh -c : 2>&1)" ] && echo "$file" && return
        done
    done
    return 1
}

# Kits export MALLOC_ARENA_MAX=4, for clients too, unless it is set. What an outer flarena set
# by default is not the user's choice and gives way.
set_arena_default() {
    case ${FLARENA_ROLE:-} in
    client) arenas=2 ;;
    server) arenas=4 ;;
    *) return ;;
    esac
    case ";${FLARENA_INHERITED:-};" in
    *";arena_max=${MALLOC_ARENA_MAX:-};"*) ;;
    *) [ -z "${MALLOC_ARENA_MAX:-}" ] || return ;;
    esac
    export MALLOC_ARENA_MAX=$arenas FLARENA_INHERITED=arena_max=$arenas
}

add_hooks() {
    beside=$(dirname "$(readlink -f -- "$library")")
    hook=$(first_file "$beside/hooks/sitecustomize.py" "$beside/flarena/hooks/sitecustomize.py" \
        "$beside/../../src/python/flarena/hooks/sitecustomize.py" \
        "$beside/../share/flarena/python/flarena/hooks/sitecustomize.py" \
        "$beside/../../share/flarena/python/flarena/hooks/sitecustomize.py") || return
    PYTHONPATH=$(put_first "$(dirname "$hook")" "${PYTHONPATH:-}")
    export PYTHONPATH
}

preload_flarena() {
    LD_PRELOAD=$(put_first "$library" "${LD_PRELOAD:-}")
    export LD_PRELOAD
    if wants_jemalloc || is_on "${NVFLARE_CLIENT_MEMORY_PROFILE:-}"; then add_hooks; fi
    [ "${FLARENA_LOG:-}" != info ] || say "preloading $library"
}

preload_fallback() {
    if ! wants_jemalloc; then
        say "$1; starting with the system's malloc"
    elif jemalloc=$(find_system_jemalloc); then
        LD_PRELOAD=$(put_first "$jemalloc" "${LD_PRELOAD:-}")
        export LD_PRELOAD MALLOC_CONF="${MALLOC_CONF:-dirty_decay_ms:5000,muzzy_decay_ms:5000}"
        say "$1; using $jemalloc instead"
    else
        say "$1; no system libjemalloc works either, starting with the system's malloc"
    fi
}

# An image's ENV names the library for every program; where it cannot be, it must go.
drop_library() {
    set -f
    kept=
    for entry in $(printf '%s' "${LD_PRELOAD:-}" | tr : ' '); do
        [ "${entry##*/}" = libflarena.so ] || kept=${kept:+$kept:}$entry
    done
    set +f
    unset LD_PRELOAD
    [ -z "$kept" ] || export LD_PRELOAD="$kept"
}

prepare() {
    fault=$(platform_fault "$1")
    [ -z "$fault" ] || { say "$fault; starting without flarena" && drop_library && return; }
    # A copy that the environment names already must neither stay beside another nor outlive a fault.
    case ${LD_PRELOAD:-} in *libflarena.so*) drop_library ;; esac
    set_arena_default
    library=$(absolute "${FLARENA_LIB:-$(find_library)}")
    fault=$(library_fault "$library")
    if [ -z "$fault" ]; then preload_flarena; else preload_fallback "$fault"; fi
    # A kit takes exactly "true" as the order to preload a system libjemalloc, next to what was
    # chosen above. "1" means the same to the library and nothing to the kit.
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" != true ] || export NVFLARE_ENABLE_JEMALLOC_PRELOAD=1
}

newline='
'
here=$(dirname "$(readlink -f -- "$0" || echo "$0")")
multiarch=$(uname -m)-linux-gnu

case ${1:-} in
-h | --help) usage && exit ;;
--)
    shift
    [ $# -gt 0 ] || refuse "which command? Nothing follows --"
    startup=$(dirname "$1")
    ;;
'' | -*) usage >&2 && exit 2 ;;
*)
    startup=$1
    shift
    [ -f "$startup/sub_start.sh" ] || refuse "$startup holds no sub_start.sh: give the startup folder of a server's or client's kit"
    ! cmp -s "$startup/sub_start.sh" "$0" || refuse "$startup/sub_start.sh is a copy of this script: put the kit's own back"
    set -- "$startup/sub_start.sh" "$@"
    [ -x "$1" ] || set -- bash "$@"
    ;;
esac
if [ -z "${FLARENA_ROLE:-}" ]; then
    [ ! -f "$startup/fed_client.json" ] || export FLARENA_ROLE=client
    [ ! -f "$startup/fed_server.json" ] || export FLARENA_ROLE=server
fi
prepare "$1"
exec "$@"
