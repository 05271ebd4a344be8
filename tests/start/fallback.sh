# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library, client, jemalloc ...
# The job starts without the library: with a system libjemalloc, with another libc, on another system.

[ -n "$jemalloc" ] || { install_packages libjemalloc2 && jemalloc=$(compgen -G "/usr/lib/*/libjemalloc.so.2"); }
reason="flarena: /nowhere cannot be used: No such file or directory"

with_system_jemalloc() { # EXPECTED NAME=VALUE...: the preload and options of a command
    [ -n "$jemalloc" ] || { echo "no system libjemalloc is installed" && exit 77; }
    local expected=$1 output
    shift
    output=$(start FLARENA_LIB=/nowhere "$@" -- -- "$SHOW" LD_PRELOAD MALLOC_CONF 2>&1)
    printf 'expected: %s\nseen: %s\n' "$expected" "$output"
    [ "$output" = "$expected" ]
}
check "without the library, a request for jemalloc uses the system's, with NVFlare's options" \
    with_system_jemalloc "$reason; using $jemalloc instead"$'\n'"LD_PRELOAD=$jemalloc"$'\nMALLOC_CONF=dirty_decay_ms:5000,muzzy_decay_ms:5000' \
    NVFLARE_ENABLE_JEMALLOC_PRELOAD=TRUE
check "with the system's jemalloc the user's LD_PRELOAD and MALLOC_CONF stay" \
    with_system_jemalloc "$reason; using $jemalloc instead"$'\n'"LD_PRELOAD=$jemalloc:$SCRATCH/one.so"$'\nMALLOC_CONF=narenas:1' \
    FLARENA_ALLOCATOR=jemalloc LD_PRELOAD="$SCRATCH/one.so" MALLOC_CONF=narenas:1
check_output "a kit preloads no second jemalloc beside the system's" \
    "$reason; using $jemalloc instead"$'\n'"$(kit_prints '<>' "$jemalloc" 2 client)" \
    start FLARENA_LIB=/nowhere NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$client"
check_output "without the library FLARENA_ALLOCATOR=glibc wins, in a kit too" \
    "$reason; starting with the system's malloc"$'\n'"$(kit_prints '<>' '' 2 client | sed 's/LD_PRELOAD=$/LD_PRELOAD is unset/')" \
    start FLARENA_LIB=/nowhere FLARENA_ALLOCATOR=glibc NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$client"

shell_takes_the_systems_jemalloc() {
    [ -n "$jemalloc" ] || { echo "no system libjemalloc is installed" && exit 77; }
    local taken=libjemalloc.so.2 options=dirty_decay_ms:5000,muzzy_decay_ms:5000
    outcome start_alone FLARENA_LIB=/nowhere FLARENA_ALLOCATOR=jemalloc LD_PRELOAD="$SCRATCH/one.so" -- -- "$SHOW" LD_PRELOAD MALLOC_CONF |
        diff - <(printf '%s\n' "flarena: /nowhere cannot be used; using $taken instead" "LD_PRELOAD=$taken:$SCRATCH/one.so" "MALLOC_CONF=$options")
    start_alone FLARENA_LIB=/nowhere FLARENA_ALLOCATOR=jemalloc FLARENA_LOG=off -- -- grep -q /libjemalloc /proc/self/maps
}
check "the shell uses the system's jemalloc by the name that the loader finds" shell_takes_the_systems_jemalloc

# In a private mount table no libjemalloc of the system can be loaded.
without_system_jemalloc() {
    unshare --mount true 2>/dev/null || { echo "needs the right to unshare mounts" && exit 77; }
    export -f start split_at_dashes without_preload clean_environment
    export shell script library bad
    # shellcheck disable=SC2016  # the inner shell expands
    unshare --mount bash -c '
        for so in /usr/lib/*/libjemalloc.so* /usr/lib*/libjemalloc.so* /usr/local/lib*/libjemalloc.so*; do
            [ -e "$so" ] && mount --bind "$bad/text.so" "$so"
        done
        start FLARENA_LIB=/nowhere FLARENA_ALLOCATOR=jemalloc -- -- "$SHOW" LD_PRELOAD' >"$SCRATCH/passed-over" 2>&1
    diff "$SCRATCH/passed-over" - <<<"$reason; no system libjemalloc works either, starting with the system's malloc"$'\nLD_PRELOAD is unset'
}
check "a system jemalloc that cannot be loaded is not used" without_system_jemalloc

musl_program() {
    need musl-gcc musl-tools || { echo "musl-tools cannot be installed" && exit 77; }
    # shellcheck disable=SC2016
    printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv("LD_PRELOAD") ? "preloaded" : "bare"); return 0; }\n' >"$SCRATCH/musl.c"
    musl-gcc -o "$SCRATCH/musl" "$SCRATCH/musl.c"
    local output
    output=$(start FLARENA_ALLOCATOR=jemalloc -- -- "$SCRATCH/musl" 2>&1)
    printf '%s\n' "$output"
    [ "$output" = "flarena: $SCRATCH/musl uses musl, not glibc; starting without flarena"$'\nbare' ]
    # The ENV of an image may name the library for each program.
    [ "$(start FLARENA_ALLOCATOR=jemalloc LD_PRELOAD="$library" -- -- "$SCRATCH/musl" 2>&1)" = "$output" ]
}
check "a musl program starts without the library, with one line" musl_program

sanitizer_preloaded() {
    local runtime output
    runtime=$(gcc -print-file-name=libasan.so)
    [ -e "$runtime" ] || { echo "gcc has no AddressSanitizer" && exit 77; }
    output=$(start LD_PRELOAD="$runtime" ASAN_OPTIONS=detect_leaks=0 -- -- "$SHOW" LD_PRELOAD 2>&1)
    printf '%s\n' "$output"
    [ "$output" = "flarena: $runtime in LD_PRELOAD is the runtime of a sanitizer, which must serve malloc; \
starting without flarena"$'\n'"LD_PRELOAD=$runtime" ]
}
check "with a sanitizer's runtime in LD_PRELOAD the job starts without the library, with one line" sanitizer_preloaded

mkdir -p "$SCRATCH/mac"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = -m ] && echo arm64 || echo Darwin\n' >"$SCRATCH/mac/uname"
chmod +x "$SCRATCH/mac/uname"
check_output "on macOS the job starts without the library, with one line" $'flarena: Darwin has no glibc; starting without flarena\nLD_PRELOAD is unset' \
    start_alone PATH="$SCRATCH/mac:$PATH" NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- -- "$SHOW" LD_PRELOAD
