# shellcheck shell=bash disable=SC2154  # part of run.sh
# With a wrong library or preload one clear line is printed, and the job starts. The images have a real older glibc and
# another user.

BAD=$SCRATCH/libraries
BAD_MOUNT=(-v "$BAD:/bad:ro")

# A library for another machine: ELF's e_machine (a byte at offset 18) says aarch64 or x86-64.
other_architecture() {
    local machine='\267'
    [ "$(uname -m)" = x86_64 ] || machine='\076'
    cp "$RELEASE/libflarena.so" "$BAD/architecture.so"
    printf '%b' "$machine" | dd of="$BAD/architecture.so" bs=1 seek=18 conv=notrunc status=none
}

# The job starts without flarena, and the only line on stderr matches.
starts_without() { # TAG PATTERN [DOCKER-OPTION...]
    local tag=$1 pattern=$2 output
    shift 2
    output=$(inside "$tag" "${BAD_MOUNT[@]}" -e LD_PRELOAD= "$@" -- /opt/flarena/sub_start.sh -- \
        sh -c 'grep -c libflarena /proc/self/maps; true' 2>&1) || return 1
    printf '%s\n' "$output"
    [ "$(wc -l <<<"$output")" -eq 2 ] && grep -qE "^flarena: .*$pattern" <<<"$output" && grep -qx 0 <<<"$output"
}

# An operator removed the library and forgot ENV: each program prints only the line of ld.so.
removed_later() {
    local output
    output=$(inside bookworm-flarena -e LD_PRELOAD=/gone/libflarena.so -- python3 -c 'print("started")' 2>&1)
    printf '%s\n' "$output"
    grep -qx started <<<"$output" && [ "$(wc -l <<<"$output")" -eq 2 ] && grep -q '/gone/libflarena.so' <<<"$output"
}

# The library built here needs this machine's glibc. With an older glibc the message names the missing version.
too_new() {
    local needs
    needs=$(objdump -T "$LIB" | grep -oE 'GLIBC_2\.[0-9]+' | sort -Vu | tail -n 1)
    [ "$(printf '%s\n' "$needs" GLIBC_2.31 | sort -V | tail -n 1)" != GLIBC_2.31 ] ||
        { echo "the library built here runs with bullseye's glibc too" && exit 77; }
    cp "$LIB" "$BAD/newer.so"
    starts_without bullseye-flarena "newer.so cannot be used: it needs glibc 2" -e FLARENA_LIB=/bad/newer.so
}

other_first() { # SEPARATOR: the system's jemalloc stands before flarena in LD_PRELOAD
    inside bookworm-flarena -e "LD_PRELOAD=libjemalloc.so.2$1/opt/flarena/lib/libflarena.so" -- \
        python3 /t/facts.py owner
}
other_second() { # SEPARATOR
    inside bookworm-flarena -e "LD_PRELOAD=/opt/flarena/lib/libflarena.so$1libjemalloc.so.2" -- \
        python3 /t/facts.py owner allocator
}

test_bad_input() {
    mkdir -p "$BAD"
    chmod 755 "$BAD"
    other_architecture
    cp "$RELEASE/libflarena.so" "$BAD/secret.so"
    chmod 600 "$BAD/secret.so"
    check "a library of another architecture causes one line" \
        starts_without bookworm-flarena "architecture.so cannot be used" -e FLARENA_LIB=/bad/architecture.so
    check "a library that needs a newer glibc causes one line that names it" too_new
    check "a library that the container's user may not read causes one line" \
        starts_without bookworm-flarena "secret.so cannot be used: Permission denied" --user 65534:65534 -e FLARENA_LIB=/bad/secret.so
    check "a missing library causes one line" \
        starts_without bookworm-flarena "/gone.so cannot be used: No such file" -e FLARENA_LIB=/gone.so
    check "a preload that was removed after the image was configured stops no program" removed_later
    for separator in ":" " "; do
        check_output "a preload before flarena, separated by '$separator', serves malloc" "False" other_first "$separator"
        check_output "a preload after flarena, separated by '$separator', does not serve malloc" "True glibc" other_second "$separator"
    done
}

if docker image inspect flarena-test:bookworm-flarena flarena-test:bullseye-flarena >/dev/null 2>&1; then
    test_bad_input
else
    skip "wrong libraries cause one line" "the images of bookworm and bullseye are needed"
fi
