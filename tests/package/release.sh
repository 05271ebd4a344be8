# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets release
# The files of scripts/build-release.sh.

refuses_newer() {
    printf '#include <stdio.h>\nint newer(void);\nint main(void) { return newer(); }\n' >"$SCRATCH/newer.c"
    echo 'int newer(void) { return 0; }' >"$SCRATCH/libc.c"
    echo 'GLIBC_2.18 { newer; };' >"$SCRATCH/libc.map"
    gcc -shared -nostdlib -o "$SCRATCH/libnewer.so" "$SCRATCH/libc.c" -Wl,--version-script="$SCRATCH/libc.map"
    gcc -o "$SCRATCH/newer" "$SCRATCH/newer.c" "$SCRATCH/libnewer.so"
    ! scripts/package/check-symbols.sh "$SCRATCH/newer"
}

exports() { # LIBRARY
    nm -D --defined-only "$1" | awk '{print $NF}' | sort
}

needed() { # FILE: the libraries that it needs, without versions
    readelf -dW "$1" | sed -nE 's/.*\(NEEDED\).*\[(ld-linux|[a-z]+[.]so)[^]]*\]/\1/p' | sort
}

is_stripped() { # FILE: it has no symbols, and it names its debug file
    local name
    name=$(basename "$1")
    if readelf -SW "$1" | grep -E '[.](debug_(info|line|str|abbrev)|symtab)'; then return 1; fi
    readelf -p .gnu_debuglink "$1" | grep -F "$name.debug"
    readelf -SW "$1.debug" | grep '[.]debug_line'
}

has_no_build_path() { # FILE
    ! strings -a "$1" | grep -F -e "$ROOT" -e "${CARGO_HOME:-$HOME/.cargo}" -e "$HOME/.rustup"
}

musl_program() {
    need musl-gcc musl-tools || { echo "musl-tools cannot be installed" && return 77; }
    musl-gcc -O1 -fno-builtin tests/c/neighbours/musl.c -o "$SCRATCH/musl"
    [ "$(in_mode jemalloc LD_PRELOAD="$PWD/$release/libflarena.so" "$SCRATCH/musl" 2>&1)" = preloaded ]
}

test_release() {
    local file
    for file in libflarena.so flarena; do
        check "$file needs no glibc newer than 2.17" scripts/package/check-symbols.sh "$release/$file"
        check "$file is stripped, and names its debug file" is_stripped "$release/$file"
        check "$file contains no path of the build machine" has_no_build_path "$release/$file"
    done
    check "a file that needs glibc 2.18 fails the check" refuses_newer
    check_output "the portable library exports the same symbols as the ordinary build" "$(exports "$LIB")" exports "$release/libflarena.so"
    check_output "libflarena.so needs only libraries of libc, and not libdl" \
        $'libc.so\nlibpthread.so' needed "$release/libflarena.so"
    check "the portable library loads into a program with musl and does nothing" musl_program
    check "when tools for an architecture are missing, the build stops before it compiles and says how to install them" names_what_is_missing
    check_output "a release for another architecture also builds this machine's command, which writes the manual pages" \
        "$(uname -m) riscv64" released_architectures riscv64
}

# Prints the architectures that release.sh passes to build-release.sh.
released_architectures() { # ARCHITECTURE...
    mkdir -p "$SCRATCH/releasing/scripts"
    cp Cargo.toml "$SCRATCH/releasing"
    cp scripts/release.sh "$SCRATCH/releasing/scripts"
    printf '#!/bin/sh\necho "$@"\nexit 1\n' >"$SCRATCH/releasing/scripts/build-release.sh"
    chmod +x "$SCRATCH/releasing/scripts/build-release.sh"
    ! "$SCRATCH/releasing/scripts/release.sh" "$@"
}

names_what_is_missing() {
    local output
    if output=$(scripts/build-release.sh riscv64 2>&1); then return 1; fi
    printf '%s\n' "$output"
    [[ $output == *"rustup target add riscv64-unknown-linux-gnu"* ]]
    [[ $output == *"apt install binutils-riscv64-linux-gnu"* && $output != *compiling* ]]
}
