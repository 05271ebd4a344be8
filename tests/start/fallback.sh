# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library, client, jemalloc ...
# The job starts without the library: with a system libjemalloc, with another libc, on another system.

[ -n "$jemalloc" ] || { install_packages libjemalloc2 && jemalloc=$(compgen -G "/usr/lib/*/libjemalloc.so.2"); }
reason="flarena: /nowhere cannot be used: No such file or directory"

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

mkdir -p "$SCRATCH/mac"
# shellcheck disable=SC2016
printf '#!/bin/sh\n[ "$1" = -m ] && echo arm64 || echo Darwin\n' >"$SCRATCH/mac/uname"
chmod +x "$SCRATCH/mac/uname"
check_output "on macOS the job starts without the library, with one line" $'flarena: Darwin has no glibc; starting without flarena\nLD_PRELOAD is unset' \
    start_alone PATH="$SCRATCH/mac:$PATH" NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- -- "$SHOW" LD_PRELOAD
