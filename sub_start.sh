#!/bin/sh
# Start a program, or the startup kit of an NVFlare site, with flarena preloaded. `flarena run` does it; where no
# command works (none here, another architecture, musl) the functions do the same; tests/start/both_ways.sh compares.
set -u
usage='usage: sub_start.sh KIT/startup [ARGUMENT...]   start a provisioned kit and stay; with KIT/startup/start.sh in the background
       sub_start.sh -- COMMAND [ARGUMENT...]    start any command; the settings are those of flarena run'
refuse() { printf 'sub_start.sh: %s\n' "$*" >&2 && exit 2; }
note() { [ "$(lower "${FLARENA_LOG:-}")" = off ] || printf 'flarena: %s\n' "$*" >&2 || :; }
lower() { printf '%s' "$1" | tr -d '[:space:]' | tr '[:upper:]' '[:lower:]'; }
first_file() { for file; do [ -f "$file" ] && readlink -f -- "$file" && return; done; }
probe() { LD_PRELOAD=$1 FLARENA_PROBE=1 /bin/sh -c :; } # a library that works answers "flarena VERSION"
preload() { # [LIBRARY]: before the rest. Another libflarena.so goes: an image's ENV may name one for every program
    rest=$(printf '%s' "${LD_PRELOAD:-}" | tr ': ' '[\n*]' | grep -vxF -e '' -e "${1:-}" | grep -vE '^(.*/)?libflarena[.]so$' | paste -sd: -)
    if [ -n "${1:-}$rest" ]; then export LD_PRELOAD="${1:-}${1:+${rest:+:}}$rest"; else unset LD_PRELOAD; fi
}
set_arenas() { # COMMAND...: kits export 4, for clients too, unless told; what an outer flarena set gives way
    case "$(lower "${FLARENA_ROLE:-}") $* " in
    client\ * | \ *" -m nvflare."*.app.client.* | \ *" -m nvflare."*.simulator_worker\ *) arenas=2 ;;
    server\ * | \ *" -m nvflare."*.app.server.* | \ *" -m nvflare."*.simulator.simulator\ * | \ *"nvflare simulator "*) arenas=4 ;;
    *) return ;; esac
    case "${GLIBC_TUNABLES:-};arena_max=;${FLARENA_INHERITED:-};" in *glibc.malloc.arena_max*) ;; *";arena_max=${MALLOC_ARENA_MAX:-};"*)
        told=$(printf '%s' "${FLARENA_INHERITED:-}" | tr ';' '\n' | grep -v -e '^$' -e '^arena_max=' | paste -sd';' -)
        export MALLOC_ARENA_MAX="$arenas" FLARENA_INHERITED="arena_max=$arenas${told:+;$told}" ;; esac
}
add_hooks() { # FOLDER of the library
    hooks=$(first_file "$1/hooks/sitecustomize.py" "$1/flarena/hooks/sitecustomize.py" "$1/../../src/python/flarena/hooks/sitecustomize.py" \
        "$1/../share/flarena/python/flarena/hooks/sitecustomize.py" "$1/../../share/flarena/python/flarena/hooks/sitecustomize.py")
    rest=$(printf '%s\n' "${PYTHONPATH:-}" | tr : '\n' | grep -vxF -- "${hooks%/*}" | paste -sd: -)
    [ -z "$hooks" ] || export PYTHONPATH="${hooks%/*}${rest:+:$rest}"
}
prepare() { # COMMAND...
    preload
    for program in /bin/sh "$(command -v "$1")"; do # an ELF file that names musl's loader
        case $(dd if="$program" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c '[:graph:]' '[ *]') in
        ' ELF'*/ld-musl-*) note "$program uses musl, not glibc; starting without flarena" && return ;; esac
    done
    [ "$(uname -s)" = Linux ] || { note "$(uname -s) has no glibc; starting without flarena" && return; }
    set_arenas "$@"
    wanted=$(lower "${FLARENA_ALLOCATOR:-}/${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}")
    case $wanted in glibc/*) wanted= ;; jemalloc/* | */1 | */true | */yes | */on) wanted=on ;; *) wanted= ;; esac
    library=${FLARENA_LIB:-$(first_file "$here/libflarena.so" "$here/lib/libflarena.so" "$here/target/release/libflarena.so" \
        "$here/../libflarena.so" "$here/../lib/libflarena.so" "$here/../lib/$arch/libflarena.so" "$here/../lib64/libflarena.so" \
        "$here"/../lib*/python3*/*-packages/flarena/libflarena.so /usr/local/lib/libflarena.so \
        "/usr/lib/$arch/libflarena.so" /usr/lib64/libflarena.so /usr/lib/libflarena.so /opt/flarena/lib/libflarena.so)}
    case $library in /* | '') ;; *) library=$PWD/$library ;; esac
    case $library in *[:\ \$]*) answer= ;; *) answer=$(probe "$library" 2>/dev/null) ;; esac
    # A kit takes exactly "true" as the order to preload a jemalloc of its own; to the library "1" says the same.
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" != true ] || export NVFLARE_ENABLE_JEMALLOC_PRELOAD=1
    if [ "${answer%% *}" = flarena ]; then
        case ${wanted:-$(lower "${NVFLARE_CLIENT_MEMORY_PROFILE:-}")}/$(lower "${FLARENA_GC:-}") in on/* | 1/* | true/* | yes/*) ;; */off | */0 | */false | */no) false ;; esac && add_hooks "${library%/*}"
        [ "$(lower "${FLARENA_LOG:-}")" != info ] || note "preloading $library"
        preload "$library" && return
    fi
    fault="libflarena.so was not found (FLARENA_LIB can name it)"
    [ -z "$library" ] || fault="$library cannot be used: $(probe "$library" 2>&1 >/dev/null | sed -e 's/.*preloaded (\(.*\)): ignored.*/\1/' -e q)"
    for jemalloc in libjemalloc.so.2 libjemalloc.so.1 ''; do [ -n "$wanted" ] && [ -z "$(probe "$jemalloc" 2>&1)" ] && break; done
    [ -n "$jemalloc" ] || { note "$fault; ${wanted:+no system libjemalloc works either, }starting with the system's malloc" && return; }
    preload "$jemalloc" && note "$fault; using $jemalloc instead"
    export MALLOC_CONF="${MALLOC_CONF:-dirty_decay_ms:5000,muzzy_decay_ms:5000}"
}

case ${1:-} in
-h | --help) printf '%s\n' "$usage" && exit ;;
--) shift && start=${1:-} ;;
'' | -*) printf '%s\n' "$usage" >&2 && exit 2 ;;
*)
    start=$1 && shift
    [ ! -d "$start" ] || start=$start/sub_start.sh
    [ -f "$start" ] || refuse "${start%/*} holds no sub_start.sh: give the startup folder of a server's or client's kit"
    ! cmp -s "$start" "$0" || refuse "$start is a copy of this script: put the kit's own back"
    if [ -x "$start" ]; then set -- "$start" "$@"; else set -- bash "$start" "$@"; fi ;;
esac
[ $# -gt 0 ] || refuse "which command? Nothing follows --"
for role in server client; do [ -n "${FLARENA_ROLE:-}" ] || [ ! -f "${start%/*}/fed_$role.json" ] || export FLARENA_ROLE=$role; done
here=$(dirname "$(readlink -f -- "$0" || printf '%s' "$0")") arch=$(uname -m)-linux-gnu
for dir in "$here" "$here/bin" "$here/target/release" "$here/../../bin"; do
    case $("$dir/flarena" --version 2>/dev/null) in "flarena "*) exec "$dir/flarena" run -- "$@" ;; esac
done
prepare "$@"
exec "$@"
