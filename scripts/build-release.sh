#!/usr/bin/env bash
# Builds the shipped files: a libflarena.so and a flarena command for each glibc from 2.17.
#
#   scripts/build-release.sh                   for this machine, and each architecture whose tools are installed
#   scripts/build-release.sh aarch64           for this one, or fail
#   scripts/build-release.sh --library ...     the library alone
#
# It needs Rust and its target, gcc and make, Python with venv, and binutils for the architecture. It names missing tools
# before it compiles. It installs zig and cargo-zigbuild below build/.
#
# Result: build/release/ARCHITECTURE/{libflarena.so,flarena}, stripped, each with its .debug file. The same sources give
# the same bytes. In another folder one word of the library differs, the checksum of its .debug file: zig records its
# working directory there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

oldest_glibc=2.17
venv=$root/build/venv-release

say() { printf 'build-release: %s\n' "$*"; }
die() {
    printf 'build-release: %s\n' "$*" >&2
    exit 1
}

target_installed() { # ARCHITECTURE
    [ -d "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$1-unknown-linux-gnu/lib" ]
}

# Prints the tools that are missing for an architecture, one a line, with the command that installs each.
missing_tools() { # ARCHITECTURE
    local tool
    command -v cargo >/dev/null || echo "cargo (install Rust: https://rustup.rs)"
    for tool in cc:gcc make:make flock:util-linux; do # cc links the build scripts, make builds jemalloc
        command -v "${tool%:*}" >/dev/null || echo "${tool%:*} (apt install ${tool#*:})"
    done
    python3 -c 'import venv, ensurepip' 2>/dev/null || echo "Python's venv (apt install python3-venv)"
    target_installed "$1" || echo "the Rust target (rustup target add $1-unknown-linux-gnu)"
    for tool in objcopy objdump; do
        tool=$(binutils "$1" $tool)
        command -v "$tool" >/dev/null || echo "$tool (apt install $(package_of_binutils "$1"))"
    done
}

package_of_binutils() { # ARCHITECTURE
    if [ "$1" = "$(uname -m)" ]; then echo binutils; else echo "binutils-${1//_/-}-linux-gnu"; fi
}

# zig has the headers and link stubs of each glibc; cargo-zigbuild uses it as the linker.
install_zig() {
    [ -x "$venv/bin/cargo-zigbuild" ] && [ -x "$venv/bin/python-zig" ] && return
    say "installing zig and cargo-zigbuild into $venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/package/requirements.txt
}

# The files must not depend on the machine's folders, clock, or page size.
reproducible_settings() { # ARCHITECTURE
    local sysroot cargo_home map
    sysroot=$(rustc --print sysroot)
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    # A constant: no source reads the time, and another time would compile jemalloc again.
    export SOURCE_DATE_EPOCH=0
    export ZIG_GLOBAL_CACHE_DIR=$root/build/zig-cache ZIG_LOCAL_CACHE_DIR=$root/build/zig-cache
    export CARGO_TARGET_DIR=$root/build/release-target CARGO_INCREMENTAL=0
    CARGO_ENCODED_RUSTFLAGS=
    CFLAGS=
    # The last match wins: zig's headers are below the root, or a link there points to them.
    for map in "$cargo_home=/cargo" "$sysroot=/rust" "$root=/flarena" "$(realpath "$venv")=/zig"; do
        CARGO_ENCODED_RUSTFLAGS+=${CARGO_ENCODED_RUSTFLAGS:+$'\x1f'}--remap-path-prefix=$map
        CFLAGS+=" -ffile-prefix-map=$map"
    done
    export CARGO_ENCODED_RUSTFLAGS CFLAGS
    # jemalloc takes the page size of the build machine by default. Arm kernels have 4, 16 or 64 KiB; built for the
    # largest it works on all. Huge pages are 2 MiB on each architecture.
    export JEMALLOC_SYS_WITH_LG_HUGEPAGE=21 JEMALLOC_SYS_WITH_LG_PAGE=12
    [ "$1" != aarch64 ] || JEMALLOC_SYS_WITH_LG_PAGE=16
}

# One after the other: in one build the crates share their features, and the library has other bytes than alone.
compile() { # ARCHITECTURE
    local package
    for package in flarena-shim ${library_only:-flarena-cli}; do
        [ "$package" != only ] || continue
        PATH=$venv/bin:$PATH cargo zigbuild --quiet --locked --release \
            --target "$1-unknown-linux-gnu.$oldest_glibc" -p "$package"
    done
}

binutils() { # ARCHITECTURE TOOL: the name of the tool for this architecture
    if [ "$1" = "$(uname -m)" ]; then echo "$2"; else echo "$1-linux-gnu-$2"; fi
}

# The shipped file is stripped. Debuggers find its .debug file by name and checksum.
split_debug() { # ARCHITECTURE FILE DIRECTORY
    local objcopy name
    name=$(basename "$2")
    objcopy=$(binutils "$1" objcopy)
    "$objcopy" --only-keep-debug "$2" "$3/$name.debug"
    (cd "$3" && "$objcopy" --strip-unneeded --add-gnu-debuglink="$name.debug" "$2" "$name")
}

build() { # ARCHITECTURE
    local out=$root/build/release/$1 built=$root/build/release-target/$1-unknown-linux-gnu/release file
    local fresh=$out.new
    say "$1: compiling for glibc $oldest_glibc"
    (reproducible_settings "$1" && compile "$1")
    rm -rf "$fresh"
    mkdir -p "$fresh"
    for file in libflarena.so ${library_only:-flarena}; do
        [ "$file" != only ] || continue
        split_debug "$1" "$built/$file" "$fresh"
        OBJDUMP=$(binutils "$1" objdump) scripts/package/check-symbols.sh "$fresh/$file"
        say "$1: $(cd "$fresh" && sha256sum "$file") $(stat -c %s "$fresh/$file") bytes"
    done
    scripts/package/third_party.py "$1-unknown-linux-gnu" >"$fresh/THIRD-PARTY-LICENSES"
    replace "$out" "$fresh"
}

# File by file: a test may be using the files of an earlier build.
replace() { # DIRECTORY BY-DIRECTORY
    local file
    mkdir -p "$1"
    for file in "$1"/*; do
        [ -e "$2/$(basename "$file")" ] || rm -rf "$file"
    done
    mv -f "$2"/* "$1"
    rmdir "$2"
}

library_only=
if [ "${1:-}" = --library ]; then
    library_only=only
    shift
fi
architectures=("$@")
if [ $# -eq 0 ]; then
    for architecture in x86_64 aarch64; do
        missing=$(missing_tools "$architecture" | paste -sd ';')
        if [ -z "$missing" ] || [ "$architecture" = "$(uname -m)" ]; then
            architectures+=("$architecture")
        else
            say "$architecture: skipped, this machine lacks $missing"
        fi
    done
fi
# Before the compilation, which takes minutes.
for architecture in "${architectures[@]}"; do
    missing=$(missing_tools "$architecture")
    [ -z "$missing" ] || die "$architecture: this machine lacks"$'\n'"$missing"
done
mkdir -p "$root/build"
exec 9>"$root/build/release.lock" && flock 9 # another process may be building
install_zig
for architecture in "${architectures[@]}"; do
    build "$architecture"
done
