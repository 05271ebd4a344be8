#!/bin/sh
# Starts a program or an NVFlare kit with flarena. It hands over to `flarena run`; where that command does not work,
# the functions below set the same environment (tests/start compares the two).
set -u
unset FLARENA_PROBE # with it the library would answer instead of the program

usage='usage: sub_start.sh KIT/startup [ARGUMENT...]            start a provisioned kit and stay
       sub_start.sh KIT/startup/start.sh [ARGUMENT...]   start it in the background
       sub_start.sh -- COMMAND [ARGUMENT...]             start any command; the settings are those of flarena run'
settings="ALLOCATOR ROLE MARKER_FILE NAME RECYCLE RECYCLE_MIN DECAY_MS MEMORY_LIMIT AT_LIMIT PRESSURE HUGE GOVERNOR SITES \
SITES_SAMPLE GC POOLS LOG LIB INHERITED LAUNCHED PROBE HIBERNATE"

lower() { printf '%s' "$1" | tr -d '[:space:]' | tr '[:upper:]' '[:lower:]'; }
note() { [ "$(lower "${FLARENA_LOG:-}")" = off ] || printf 'flarena: %s\n' "$*" >&2 || :; }
info() { [ "$(lower "${FLARENA_LOG:-}")" != info ] || note "$@"; }
refuse() { printf 'sub_start.sh: %s\n' "$*" >&2 && exit 2; }

switch() { # VALUE: prints on or off, or nothing for any other word
    case $(lower "$1") in
        on | 1 | true | yes) echo on ;;
        off | 0 | false | no) echo off ;;
    esac
}

first_file() { # NAME FOLDER...: prints the path of the file in the first folder that has it
    name=$1
    shift
    for dir; do [ -f "$dir/$name" ] && readlink -f -- "$dir/$name" && return; done
}

warn_of_unknown_settings() { # names variables that look like a setting or like NVFlare's switch, and are neither
    for name in $(env | sed -n -e 's/^\(FLARENA_[^=]*\)=.*/\1/p' -e 's/^\(NVFLARE_[^=]*JEM*AL*OC[^=]*\)=.*/\1/p'); do
        case " $settings NVFLARE_ENABLE_JEMALLOC_PRELOAD " in
            *" ${name#FLARENA_} "*) ;;
            *) note "there is no setting $name; README.md lists them" ;;
        esac
    done
}

uses_musl() { # PROGRAM
    dd if="$1" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c '[:graph:]' '[ *]' | grep -q '^ ELF.*/ld-musl-'
}

sanitizer_in_preload() {
    printf '%s' "${LD_PRELOAD:-}" | tr ': ' '[\n*]' | grep -m 1 -E '(^|/)lib(clang_rt[.])?(asan|hwasan|lsan|msan|tsan)[-._][^/]*$'
}

probe() { # LIBRARY: prints "flarena VERSION" when it works, and the loader's complaint when it cannot be loaded
    case $1 in
        *[:\ \$]*) echo "LD_PRELOAD cannot hold its path" >&2 ;;
        *) LD_PRELOAD=$1 FLARENA_PROBE=1 /bin/sh -c : ;;
    esac
}

# Other preloads stay, except another libflarena.so: an image's ENV may name one for every program.
preload() { # [LIBRARY]: puts it first in LD_PRELOAD
    rest=$(printf '%s' "${LD_PRELOAD:-}" | tr ': ' '[\n*]' | grep -vxF -e '' -e "${1:-}" |
        grep -vE '(^|/)libflarena[.]so$' | paste -sd: -)
    if [ -n "${1:-}$rest" ]; then
        export LD_PRELOAD="${1:-}${1:+${rest:+:}}$rest"
    else
        unset LD_PRELOAD
    fi
}

# A number that the user set stays; one that an outer flarena set is replaced. Kits export 4, also for clients.
set_arenas() { # COMMAND...: 2 for a client, 4 for a server
    case "$(lower "${FLARENA_ROLE:-}") $* " in
        client\ * | \ *" -m nvflare."*.app.client.* | \ *" -m nvflare."*.simulator_worker\ *) arenas=2 ;;
        server\ * | \ *" -m nvflare."*.app.server.* | \ *" -m nvflare."*.simulator.simulator\ * | \
            \ *"nvflare simulator "*) arenas=4 ;;
        *) return ;;
    esac
    case "${GLIBC_TUNABLES:-};arena_max=;${FLARENA_INHERITED:-};" in
        *glibc.malloc.arena_max*) return ;;
        *";arena_max=${MALLOC_ARENA_MAX:-};"*) ;;
        *) return ;;
    esac
    others=$(printf ';%s' "${FLARENA_INHERITED:-}" | sed -e 's/;arena_max=[^;]*//' -e 's/;*$//')
    export MALLOC_ARENA_MAX="$arenas" FLARENA_INHERITED="arena_max=$arenas$others"
}

add_hooks() { # puts the Python hooks of the library first in PYTHONPATH
    hooks=$(cd "${library%/*}" && first_file sitecustomize.py hooks flarena/hooks ../../src/python/flarena/hooks \
        ../share/flarena/python/flarena/hooks ../../share/flarena/python/flarena/hooks) ||
        hooks=$(first_file flarena.zip "${library%/*}/.." | sed 's,$,/flarena/hooks/sitecustomize.py,')
    rest=$(printf '%s\n' "${PYTHONPATH:-}" | tr : '\n' | grep -vxF -- "${hooks%/*}" | paste -sd: -)
    [ -z "$hooks" ] || export PYTHONPATH="${hooks%/*}${rest:+:$rest}"
}

set_pool() { # NAME=VALUE EFFECT
    export "${1?}"
    info "$1: $2 (FLARENA_POOLS=off leaves it alone)"
}

set_pools() { # COMMAND...: configures the allocators of Arrow and of a Python that uses mimalloc, unless the user did
    [ -n "${ARROW_DEFAULT_MEMORY_POOL:-}" ] ||
        set_pool ARROW_DEFAULT_MEMORY_POOL=system "Arrow's buffers come from malloc"
    [ -z "${MIMALLOC_PURGE_DELAY:-}" ] || return 0
    case $arch:$(readlink -f -- "$(command -v "$1")") in
        aarch64-* | */python3.*t) set_pool MIMALLOC_PURGE_DELAY=0 "mimalloc returns free memory at once" ;;
    esac
}

find_library() { # prints the path of libflarena.so, found from the script's folder as `flarena run` does
    cd "$here" && first_file libflarena.so . "$arch" lib target/release .. ../lib "../lib/$arch" ../lib64 \
        ../lib*/python3*/*-packages/flarena /usr/local/lib "/usr/lib/$arch" /usr/lib64 /usr/lib /opt/flarena/lib
}

use_library() { # COMMAND...
    markers=$(switch "${NVFLARE_CLIENT_MEMORY_PROFILE:-}")
    case ${NVFLARE_CLIENT_MEMORY_GC_ROUNDS:-} in
        *[!0-9]*) rounds= ;;
        *[1-9]*) rounds=on ;;
        *) rounds= ;;
    esac
    case $jemalloc$markers$rounds$(switch "${FLARENA_SITES:-}")/$(switch "${FLARENA_GC:-}") in
        *on*/* | */ | */on) add_hooks ;; # FLARENA_GC is on by default
    esac
    note "preloading $library"
    [ "$(switch "${FLARENA_POOLS:-}")" = off ] || set_pools "$@"
    [ -z "${FLARENA_MARKER_FILE:-}" ] || [ -n "${NVFLARE_CLIENT_MEMORY_PROFILE:-}" ] ||
        note "FLARENA_MARKER_FILE has no effect: markers are off without NVFLARE_CLIENT_MEMORY_PROFILE=1"
    [ "$(switch "${NVFLARE_CUDA_EMPTY_CACHE:-}")" != on ] || [ -n "$rounds" ] || note \
        "NVFLARE_CUDA_EMPTY_CACHE=true: flarena empties no CUDA cache, because NVFLARE_CLIENT_MEMORY_GC_ROUNDS is 0"
    preload "$library"
}

# A library that can be loaded prints nothing here. Neither does the empty name.
use_system_jemalloc() { # REASON: preloads the system's jemalloc if jemalloc was chosen and it can be loaded
    for system in ${jemalloc:+libjemalloc.so.2 libjemalloc.so.1} ''; do
        [ -n "$(probe "$system" 2>&1)" ] || break
    done
    if [ -z "$system" ]; then
        note "$1; ${jemalloc:+no system libjemalloc works either, }starting with the system's malloc"
        return
    fi
    preload "$system"
    note "$1; using $system instead"
    export MALLOC_CONF="${MALLOC_CONF:-dirty_decay_ms:5000,muzzy_decay_ms:5000}"
}

prepare() { # COMMAND...: sets its environment
    preload
    warn_of_unknown_settings
    for program in /bin/sh "$(command -v "$1")"; do
        if uses_musl "$program"; then note "$program uses musl, not glibc; starting without flarena" && return; fi
    done
    if runtime=$(sanitizer_in_preload); then
        note "$runtime in LD_PRELOAD is the runtime of a sanitizer, which must serve malloc; starting without flarena"
        return
    fi
    [ "$(uname -s)" = Linux ] || { note "$(uname -s) has no glibc; starting without flarena" && return; }
    set_arenas "$@"
    library=${FLARENA_LIB:-$(find_library)}
    case $library in /* | '') ;; *) library=$PWD/$library ;; esac
    case $(lower "${FLARENA_ALLOCATOR:-}/${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}") in
        glibc/*) jemalloc= ;;
        jemalloc/* | */1 | */true | */yes | */on) jemalloc=on ;;
        *) jemalloc= ;;
    esac
    # If the value is exactly "true", a kit's start script preloads a jemalloc that it finds itself.
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" != true ] || export NVFLARE_ENABLE_JEMALLOC_PRELOAD=1
    if probe "$library" 2>/dev/null | grep -q '^flarena '; then
        use_library "$@"
        return
    fi
    if [ -n "$library" ]; then
        reason=$(probe "$library" 2>&1 >/dev/null | sed -e 's/.*preloaded (\(.*\)): ignored.*/\1/' -e q)
        use_system_jemalloc "$library cannot be used: $reason"
    else
        use_system_jemalloc "libflarena.so was not found for ${arch%%-*} (FLARENA_LIB can name it)"
    fi
}

case ${1:-} in
    -h | --help) printf '%s\n' "$usage" && exit ;;
    --)
        shift
        [ $# -gt 0 ] || refuse "which command? Nothing follows --"
        start=$1
        ;;
    '' | -*) printf '%s\n' "$usage" >&2 && exit 2 ;;
    *)
        start=$1
        shift
        [ ! -d "$start" ] || start=$start/sub_start.sh
        [ -f "$start" ] ||
            refuse "${start%/*} holds no sub_start.sh: give the startup folder of a server's or client's kit"
        ! cmp -s "$start" "$0" || refuse "$start is a copy of this script: put the kit's own back"
        if [ -x "$start" ]; then set -- "$start" "$@"; else set -- bash "$start" "$@"; fi
        ;;
esac
for role in server client; do
    [ -n "${FLARENA_ROLE:-}" ] || [ ! -f "${start%/*}/fed_$role.json" ] || export FLARENA_ROLE=$role
done
here=$(dirname "$(readlink -f -- "$0" || printf '%s' "$0")")
arch=$(uname -m)-linux-gnu
for dir in "$here" "$here/bin" "$here/target/release" "$here/../../bin"; do
    case $("$dir/flarena" --version 2>/dev/null) in "flarena "*) exec "$dir/flarena" run --verbose -- "$@" ;; esac
done
prepare "$@"
export FLARENA_LAUNCHED=$$
exec "$@"
