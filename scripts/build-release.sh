#!/usr/bin/env bash
# Build what is shipped: one libflarena.so and one flarena command for every glibc since 2.17.
#
#   scripts/build-release.sh                   for each architecture whose Rust target is installed
#   scripts/build-release.sh aarch64           for this one, or fail
#   scripts/build-release.sh --library ...     the library alone
#
# Result: build/release/ARCHITECTURE/{libflarena.so,flarena}, stripped, each with its .debug file.
# The same sources give the same bytes. In another folder one word of the library differs, the checksum
# of its .debug file: zig notes in its own parts where it was called.
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

# zig brings the headers and link stubs of any glibc; cargo-zigbuild puts it in cc's place.
prepare_tools() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust first"
    [ -x "$venv/bin/cargo-zigbuild" ] && [ -x "$venv/bin/python-zig" ] && return
    say "installing zig and cargo-zigbuild into $venv"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/package/requirements.txt
}

target_installed() { # ARCHITECTURE
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1-unknown-linux-gnu/lib" ]
}

# Nothing of the machine may enter the files: neither its folders, nor the clock, nor its page size.
reproducible_settings() { # ARCHITECTURE
    local sysroot cargo_home map
    sysroot=$(rustc --print sysroot)
    cargo_home=${CARGO_HOME:-$HOME/.cargo}
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
    export ZIG_GLOBAL_CACHE_DIR=$root/build/zig-cache ZIG_LOCAL_CACHE_DIR=$root/build/zig-cache
    export CARGO_TARGET_DIR=$root/build/release-target CARGO_INCREMENTAL=0
    CARGO_ENCODED_RUSTFLAGS=
    CFLAGS=
    # The last map that matches wins: zig's headers lie below the root, or where a link there leads.
    for map in "$cargo_home=/cargo" "$sysroot=/rust" "$root=/flarena" "$(realpath "$venv")=/zig"; do
        CARGO_ENCODED_RUSTFLAGS+=${CARGO_ENCODED_RUSTFLAGS:+$'\x1f'}--remap-path-prefix=$map
        CFLAGS+=" -ffile-prefix-map=$map"
    done
    export CARGO_ENCODED_RUSTFLAGS CFLAGS
    # jemalloc would take the page size of the machine that builds. Arm servers run with 4 and
    # with 64 KiB pages: the larger serves both. Huge pages are 2 MiB by decision, on each.
    export JEMALLOC_SYS_WITH_LG_HUGEPAGE=21 JEMALLOC_SYS_WITH_LG_PAGE=12
    [ "$1" != aarch64 ] || JEMALLOC_SYS_WITH_LG_PAGE=16
}

# One after the other: built together they would share the features of their crates, and the
# library would have other bytes than alone.
compile() { # ARCHITECTURE
    local package
    for package in flarena-shim ${library_only:-flarena-cli}; do
        [ "$package" != only ] || continue
        PATH=$venv/bin:$PATH cargo zigbuild --quiet --locked --release \
            --target "$1-unknown-linux-gnu.$oldest_glibc" -p "$package"
    done
}

binutils() { # ARCHITECTURE TOOL: the name of the tool that knows this architecture
    if [ "$1" = "$(uname -m)" ]; then echo "$2"; else echo "$1-linux-gnu-$2"; fi
}

# The shipped file is stripped; debuggers find the .debug file beside it by name and checksum.
split_debug() { # ARCHITECTURE FILE DIRECTORY
    local objcopy name
    name=$(basename "$2")
    objcopy=$(binutils "$1" objcopy)
    command -v "$objcopy" >/dev/null || die "$objcopy is missing: install binutils for $1"
    "$objcopy" --only-keep-debug "$2" "$3/$name.debug"
    (cd "$3" && "$objcopy" --strip-unneeded --add-gnu-debuglink="$name.debug" "$2" "$name")
}

build() { # ARCHITECTURE
    local out=$root/build/release/$1 built=$root/build/release-target/$1-unknown-linux-gnu/release file
    say "$1: compiling for glibc $oldest_glibc"
    (reproducible_settings "$1" && compile "$1")
    rm -rf "$out"
    mkdir -p "$out"
    for file in libflarena.so ${library_only:-flarena}; do
        [ "$file" != only ] || continue
        split_debug "$1" "$built/$file" "$out"
        OBJDUMP=$(binutils "$1" objdump) scripts/package/check-symbols.sh "$out/$file"
        say "$1: $(cd "$out" && sha256sum "$file") $(stat -c %s "$out/$file") bytes"
    done
    scripts/package/third_party.py "$1-unknown-linux-gnu" >"$out/THIRD-PARTY-LICENSES"
}

library_only=
if [ "${1:-}" = --library ]; then
    library_only=only
    shift
fi
prepare_tools
if [ $# -gt 0 ]; then
    for architecture; do
        target_installed "$architecture" || die "$architecture: no Rust target, install it with: rustup target add $architecture-unknown-linux-gnu"
        build "$architecture"
    done
else
    for architecture in x86_64 aarch64; do
        if target_installed "$architecture"; then
            build "$architecture"
        else
            say "$architecture: skipped, no Rust target (rustup target add $architecture-unknown-linux-gnu)"
        fi
    done
fi
