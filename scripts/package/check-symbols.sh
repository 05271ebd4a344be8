#!/usr/bin/env bash
# check-symbols.sh FILE...: fails when a library or program needs a glibc newer than 2.17.
#
# An older ld.so refuses a library with an unknown symbol version, and each program with that preload would not start.
set -euo pipefail

OLDEST=2.17

needed_versions() { # FILE
    "${OBJDUMP:-objdump}" -T "$1" | grep -oE 'GLIBC_[0-9.]+' | cut -d_ -f2 | sort -Vu
}

for file; do
    newest=$(needed_versions "$file" | tail -n 1)
    if [ -z "$newest" ]; then
        echo "check-symbols: $file has no glibc version: is it a dynamic library or program?" >&2
        exit 1
    fi
    if [ "$(printf '%s\n' "$newest" "$OLDEST" | sort -V | tail -n 1)" != "$OLDEST" ]; then
        printf 'check-symbols: %s needs glibc %s, newer than %s, because of:\n' "$file" "$newest" "$OLDEST" >&2
        "${OBJDUMP:-objdump}" -T "$file" | grep -F "GLIBC_$newest" >&2
        exit 1
    fi
done
