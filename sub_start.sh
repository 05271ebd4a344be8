#!/bin/sh
# Start a program, or the startup kit of an NVFlare site, with flarena preloaded. `flarena run` does it; where no
# command works (none here, another architecture, musl) the functions do the same: see tests/start/both_ways.sh.
set -u
usage='usage: sub_start.sh KIT/startup [ARGUMENT...]   start a provisioned kit, arguments unchanged
       sub_start.sh -- COMMAND [ARGUMENT...]    start any command; the settings are those of flarena run'
refuse() { printf 'sub_start.sh: %s\n' "$*" >&2 && exit 2; }
note() { [ "$(lower "${FLARENA_LOG:-}")" = off ] || printf 'flarena: %s\n' "$*" >&2 || :; }
lower() { printf '%s' "$1" | tr -d '[:space:]' | tr '[:upper:]' '[:lower:]'; }
first_file() { for file; do [ -f "$file" ] && readlink -f -- "$file" && return; done; }
probe() { LD_PRELOAD=$1 FLARENA_PROBE=1 /bin/sh -c :; } # a library that works answers "flarena VERSION"
musl_program() { # COMMAND: the first program that names musl's loader in its ELF file
    for program in /bin/sh "$(command -v "$1")"; do
        dd if="$program" bs=4096 count=1 2>/dev/null | LC_ALL=C tr -c '[:graph:]' '\n' | sed '2{/^ELF/!q;}' |
            grep -q '^/.*/ld-musl-' && echo "$program" && return
    done
}
set_arenas() { # COMMAND...: kits export 4, for clients too, unless told; what an outer flarena set gives way
    case "$(lower "${FLARENA_ROLE:-}") $* " in
    client\ * | \ *" -m nvflare."*.app.client.* | \ *" -m nvflare."*.simulator_worker\ *) arenas=2 ;;
    server\ * | \ *" -m nvflare."*.app.server.* | \ *" -m nvflare."*.simulator.simulator\ *) arenas=4 ;;
    *) return ;;
    esac
    case ";arena_max=;${FLARENA_INHERITED:-};${GLIBC_TUNABLES:-}" in
    *glibc.malloc.arena_max*) return ;;
    *";arena_max=${MALLOC_ARENA_MAX:-};"*) ;;
    *) return ;;
    esac
    told=$(printf '%s' "${FLARENA_INHERITED:-}" | tr ';' '\n' | grep -v -e '^$' -e '^arena_max=' | paste -sd';' -)
    export MALLOC_ARENA_MAX="$arenas" FLARENA_INHERITED="arena_max=$arenas${told:+;$told}"
}
system_jemalloc() { # the first that ld.so has nothing to say about
    for dir in "/usr/lib/$arch" "/lib/$arch" /usr/lib64 /lib64 /usr/lib /lib "/usr/local/lib/$arch" /usr/local/lib64 /usr/local/lib; do
        for file in "$dir/libjemalloc.so.2" "$dir/libjemalloc.so.1" "$dir/libjemalloc.so"; do
            [ -f "$file" ] && [ -z "$(probe "$file" 2>&1)" ] && echo "$file" && return
        done
    done
}
add_hooks() { # FOLDER of the library
    hooks=$(first_file "$1/hooks/sitecustomize.py" "$1/flarena/hooks/sitecustomize.py" \
        "$1/../../src/python/flarena/hooks/sitecustomize.py" "$1"/../share/flarena/python/flarena/hooks/sitecustomize.py \
        "$1"/../../share/flarena/python/flarena/hooks/sitecustomize.py) && hooks=${hooks%/*}
    rest=$(printf '%s\n' "${PYTHONPATH:-}" | tr : '\n' | grep -vxF -- "$hooks" | paste -sd: -)
    [ -z "$hooks" ] || export PYTHONPATH="$hooks${rest:+:$rest}"
}
prepare() { # COMMAND...
    # An image's ENV names the library for every program: it must neither stay beside another nor outlive a fault.
    others=$(printf '%s' "${LD_PRELOAD:-}" | tr ': ' '[\n*]' | grep -vE '^$|(^|/)libflarena[.]so$' | paste -sd: -)
    case ${LD_PRELOAD:-} in *libflarena.so*) if [ -n "$others" ]; then LD_PRELOAD=$others; else unset LD_PRELOAD; fi ;; esac
    musl=$(musl_program "$1") && fault=${musl:+$musl uses musl, not glibc}
    [ "$(uname -s)" = Linux ] || fault="$(uname -s) has no glibc"
    [ -z "$fault" ] || { note "$fault; starting without flarena" && return; }
    set_arenas "$@"
    wanted=$(lower "${FLARENA_ALLOCATOR:-}/${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}")
    case $wanted in jemalloc/*) ;; glibc/*) wanted= ;; */1 | */true | */yes | */on) ;; *) wanted= ;; esac
    # A kit takes exactly "true" as the order to preload a jemalloc of its own; to the library "1" says the same.
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD:-}" != true ] || export NVFLARE_ENABLE_JEMALLOC_PRELOAD=1
    library=${FLARENA_LIB:-$(first_file "$here/libflarena.so" "$here/lib/libflarena.so" "$here/target/release/libflarena.so" \
        "$here/../libflarena.so" "$here/../lib/libflarena.so" "$here/../lib/$arch/libflarena.so" "$here/../lib64/libflarena.so" \
        "$here"/../lib*/python3*/*-packages/flarena/libflarena.so /usr/local/lib/libflarena.so \
        "/usr/lib/$arch/libflarena.so" /usr/lib64/libflarena.so /usr/lib/libflarena.so /opt/flarena/lib/libflarena.so)}
    case $library in '') fault="libflarena.so was not found (FLARENA_LIB can name it)" ;; /*) ;; *) library=$PWD/$library ;; esac
    case $library in *[:\ \$]*) answer= ;; *) answer=$(probe "$library" 2>/dev/null) ;; esac
    case $answer in
    "flarena "*)
        case ${wanted:+on}$(lower "${NVFLARE_CLIENT_MEMORY_PROFILE:-}") in on* | 1 | true | yes) add_hooks "${library%/*}" ;; esac
        [ "$(lower "${FLARENA_LOG:-}")" != info ] || note "preloading $library"
        export LD_PRELOAD="$library${others:+:$others}" && return
        ;;
    esac
    fault=${fault:-$library cannot be used: $(probe "$library" 2>&1 >/dev/null | sed -e 's/.*preloaded (\(.*\)): ignored.*/\1/' -e q)}
    jemalloc=$([ -z "$wanted" ] || system_jemalloc)
    if [ -n "$jemalloc" ]; then
        export LD_PRELOAD="$jemalloc${others:+:$others}" MALLOC_CONF="${MALLOC_CONF:-dirty_decay_ms:5000,muzzy_decay_ms:5000}"
        note "$fault; using $jemalloc instead"
    else
        note "$fault; ${wanted:+no system libjemalloc works either, }starting with the system's malloc"
    fi
}

start=
case ${1:-} in
-h | --help) printf '%s\n' "$usage" && exit ;;
--) shift ;;
'' | -*) printf '%s\n' "$usage" >&2 && exit 2 ;;
*)
    start=$1/sub_start.sh
    shift
    [ -f "$start" ] || refuse "${start%/*} holds no sub_start.sh: give the startup folder of a server's or client's kit"
    ! cmp -s "$start" "$0" || refuse "$start is a copy of this script: put the kit's own back"
    if [ -x "$start" ]; then set -- "$start" "$@"; else set -- bash "$start" "$@"; fi
    ;;
esac
[ $# -gt 0 ] || refuse "which command? Nothing follows --"
start=${start:-$1}
for role in server client; do
    [ -n "${FLARENA_ROLE:-}" ] || [ ! -f "${start%/*}/fed_$role.json" ] || export FLARENA_ROLE=$role
done
here=$(dirname "$(readlink -f -- "$0" || printf '%s' "$0")") arch=$(uname -m)-linux-gnu fault=
for dir in "$here" "$here/bin" "$here/target/release" "$here/../../bin"; do
    case $("$dir/flarena" --version 2>/dev/null) in "flarena "*) exec "$dir/flarena" run -- "$@" ;; esac
done
prepare "$@"
exec "$@"
