#!/bin/sh
# Start a program or an NVFlare kit with flarena: by `flarena run`, or where no command works by these functions (tests/start compares).
set -u
usage='usage: sub_start.sh KIT/startup [ARGUMENT...]   start a provisioned kit and stay; with KIT/startup/start.sh in the background
       sub_start.sh -- COMMAND [ARGUMENT...]    start any command; the settings are those of flarena run'
refuse() { printf 'sub_start.sh: %s\n' "$*" >&2 && exit 2; }
note() { [ "$(lower "${FLARENA_LOG:-}")" = off ] || printf 'flarena: %s\n' "$*" >&2 || :; }
info() { [ "$(lower "${FLARENA_LOG:-}")" != info ] || note "$@"; }
settings='ALLOCATOR ROLE MARKER_FILE RECYCLE RECYCLE_MIN DECAY_MS MEMORY_LIMIT PRESSURE HUGE HIBERNATE GOVERNOR SITES GC POOLS LOG LIB INHERITED LAUNCHED PROBE'
name_unknown() { # what looks like a setting, or like NVFlare's switch, and is none
    for name in $(env | sed -n -e 's/^\(FLARENA_[^=]*\)=.*/\1/p' -e 's/^\(NVFLARE_[^=]*JEM*AL*OC[^=]*\)=.*/\1/p'); do
        case " $settings NVFLARE_ENABLE_JEMALLOC_PRELOAD " in *" ${name#FLARENA_} "*) ;; *) note "there is no setting $name; README.md lists them" ;; esac; done
}
lower() { printf '%s' "$1" | tr -d '[:space:]' | tr '[:upper:]' '[:lower:]'; }
switch() { case $(lower "$1") in on | 1 | true | yes) echo on ;; off | 0 | false | no) echo off ;; esac; }
first_file() { name=$1 && shift && for dir; do [ -f "$dir/$name" ] && readlink -f -- "$dir/$name" && return; done; } # NAME FOLDER...
uses_musl() { dd if="$1" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c '[:graph:]' '[ *]' | grep -q '^ ELF.*/ld-musl-'; }
probe() { case $1 in *[:\ \$]*) echo "LD_PRELOAD cannot hold its path" >&2 ;; *) LD_PRELOAD=$1 FLARENA_PROBE=1 /bin/sh -c : ;; esac; }
preload() { # [LIBRARY]: before the rest. Another libflarena.so goes: an image's ENV may name one for every program
    rest=$(printf '%s' "${LD_PRELOAD:-}" | tr ': ' '[\n*]' | grep -vxF -e '' -e "${1:-}" | grep -vE '(^|/)libflarena[.]so$' | paste -sd: -)
    if [ -n "${1:-}$rest" ]; then export LD_PRELOAD="${1:-}${1:+${rest:+:}}$rest"; else unset LD_PRELOAD; fi
}
set_arenas() { # COMMAND...: kits export 4, for clients too, unless told; what an outer flarena set gives way
    case "$(lower "${FLARENA_ROLE:-}") $* " in
    client\ * | \ *" -m nvflare."*.app.client.* | \ *" -m nvflare."*.simulator_worker\ *) arenas=2 ;;
    server\ * | \ *" -m nvflare."*.app.server.* | \ *" -m nvflare."*.simulator.simulator\ * | \ *"nvflare simulator "*) arenas=4 ;; *) return ;; esac
    case "${GLIBC_TUNABLES:-};arena_max=;${FLARENA_INHERITED:-};" in *glibc.malloc.arena_max*) ;; *";arena_max=${MALLOC_ARENA_MAX:-};"*)
        told=$(printf ';%s' "${FLARENA_INHERITED:-}" | sed -e 's/;arena_max=[^;]*//' -e 's/;*$//')
        export MALLOC_ARENA_MAX="$arenas" FLARENA_INHERITED="arena_max=$arenas$told" ;; esac
}
add_hooks() { # those of the library
    hooks=$(cd "${library%/*}" && first_file sitecustomize.py hooks flarena/hooks ../../src/python/flarena/hooks \
        ../share/flarena/python/flarena/hooks ../../share/flarena/python/flarena/hooks)
    rest=$(printf '%s\n' "${PYTHONPATH:-}" | tr : '\n' | grep -vxF -- "${hooks%/*}" | paste -sd: -)
    [ -z "$hooks" ] || export PYTHONPATH="${hooks%/*}${rest:+:$rest}"
}
set_pools() { # COMMAND...: what other libraries allocate beside malloc, where the user has chosen nothing
    [ -n "${ARROW_DEFAULT_MEMORY_POOL:-}" ] || set_pool ARROW_DEFAULT_MEMORY_POOL=system "Arrow's buffers come from malloc"
    case $arch:$(readlink -f -- "$(command -v "$1")") in aarch64-* | */python3.*t)
        [ -n "${MIMALLOC_PURGE_DELAY:-}" ] || set_pool MIMALLOC_PURGE_DELAY=0 "mimalloc gives back at once what is free" ;; esac
}
set_pool() { export "${1?}" && info "$1: $2 (FLARENA_POOLS=off leaves it alone)"; } # NAME=VALUE EFFECT
prepare() { # COMMAND...
    preload; name_unknown
    musl=$(for program in /bin/sh "$(command -v "$1")"; do uses_musl "$program" && echo "$program" && break; done)
    [ -z "$musl" ] || { note "$musl uses musl, not glibc; starting without flarena" && return; }
    [ "$(uname -s)" = Linux ] || { note "$(uname -s) has no glibc; starting without flarena" && return; }
    set_arenas "$@"
    library=${FLARENA_LIB:-$(cd "$here" && first_file libflarena.so . lib target/release .. ../lib "../lib/$arch" ../lib64 \
        ../lib*/python3*/*-packages/flarena /usr/local/lib "/usr/lib/$arch" /usr/lib64 /usr/lib /opt/flarena/lib)}
    case $library in /* | '') ;; *) library=$PWD/$library ;; esac; wanted=$(lower "${FLARENA_ALLOCATOR:-}/${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}")
    case $wanted in glibc/*) wanted= ;; jemalloc/* | */1 | */true | */yes | */on) wanted=on ;; *) wanted= ;; esac
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" != true ] || export NVFLARE_ENABLE_JEMALLOC_PRELOAD=1 # "true" makes a kit preload its own
    if probe "$library" 2>/dev/null | grep -q '^flarena '; then # "flarena VERSION" is what a library that works answers
        case $wanted$(switch "${NVFLARE_CLIENT_MEMORY_PROFILE:-}")$(switch "${FLARENA_SITES:-}")/$(switch "${FLARENA_GC:-}") in
        *on*/* | */ | */on) add_hooks ;; esac
        info "preloading $library"; [ "$(switch "${FLARENA_POOLS:-}")" = off ] || set_pools "$@"
        preload "$library" && return
    fi
    fault=${library:+$library cannot be used: $(probe "$library" 2>&1 >/dev/null | sed -e 's/.*preloaded (\(.*\)): ignored.*/\1/' -e q)}
    fault=${fault:-libflarena.so was not found (FLARENA_LIB can name it)}
    for jemalloc in ${wanted:+libjemalloc.so.2 libjemalloc.so.1} ''; do [ -n "$(probe "$jemalloc" 2>&1)" ] || break; done
    [ -n "$jemalloc" ] || { note "$fault; ${wanted:+no system libjemalloc works either, }starting with the system's malloc" && return; }
    preload "$jemalloc"; note "$fault; using $jemalloc instead"; export MALLOC_CONF="${MALLOC_CONF:-dirty_decay_ms:5000,muzzy_decay_ms:5000}"
}
case ${1:-} in
-h | --help) printf '%s\n' "$usage" && exit ;;
--) shift && start=${1:-}; [ $# -gt 0 ] || refuse "which command? Nothing follows --" ;;
'' | -*) printf '%s\n' "$usage" >&2 && exit 2 ;;
*) start=$1 && shift
    [ ! -d "$start" ] || start=$start/sub_start.sh
    [ -f "$start" ] || refuse "${start%/*} holds no sub_start.sh: give the startup folder of a server's or client's kit"
    ! cmp -s "$start" "$0" || refuse "$start is a copy of this script: put the kit's own back"
    if [ -x "$start" ]; then set -- "$start" "$@"; else set -- bash "$start" "$@"; fi ;; esac
for role in server client; do [ -n "${FLARENA_ROLE:-}" ] || [ ! -f "${start%/*}/fed_$role.json" ] || export FLARENA_ROLE=$role; done
here=$(dirname "$(readlink -f -- "$0" || printf '%s' "$0")") arch=$(uname -m)-linux-gnu
for dir in "$here" "$here/bin" "$here/target/release" "$here/../../bin"; do
    case $("$dir/flarena" --version 2>/dev/null) in "flarena "*) exec "$dir/flarena" run -- "$@" ;; esac; done
prepare "$@"; export FLARENA_LAUNCHED=$$
exec "$@"
