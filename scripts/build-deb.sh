#!/usr/bin/env bash
# Builds the Debian package from the files of scripts/build-release.sh.
#
#   scripts/build-deb.sh [ARCHITECTURE]      this machine's by default
#
# Result: build/dist/flarena_VERSION_DEBIANNAME.deb, for each Debian and Ubuntu: it depends on glibc only.
set -euo pipefail
cd "$(dirname "$0")/.."

architecture=${1:-$(uname -m)}
release=build/release/$architecture
own=build/release/$(uname -m)/flarena # it runs here, and writes the manual and completions
for file in "$release/libflarena.so" "$own"; do
    if ! [ -f "$file" ]; then
        echo "build-deb: $file is missing: run scripts/build-release.sh $(basename "$(dirname "$file")") first" >&2
        exit 1
    fi
done
case $architecture in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) echo "build-deb: no Debian name for $architecture" >&2 && exit 1 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
# As in the wheel: scripts/package/hatch_metadata.py.
maintainer=${FLARENA_MAINTAINER:-$(sed -n 's/^UNNAMED = "\(.*\)"/\1/p' scripts/package/hatch_metadata.py)}
homepage=${FLARENA_PROJECT_URL:-}
umask 022
tree=$(mktemp -d "${TMPDIR:-/tmp}/flarena-deb.XXXXXX")
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

place() { # MODE SOURCE DESTINATION
    install -D -m "$1" "$2" "$tree/$3"
}

program_files() {
    place 755 "$release/flarena" usr/bin/flarena
    place 644 "$release/libflarena.so" "usr/lib/$architecture-linux-gnu/libflarena.so"
    place 755 sub_start.sh usr/share/flarena/sub_start.sh
    place 644 include/flarena.h usr/include/flarena.h
    local file
    git ls-files -co --exclude-standard src/python/flarena | while IFS= read -r file; do
        place 644 "$file" "usr/share/flarena/python/${file#src/python/}"
    done
}

documents() {
    local doc=usr/share/doc/flarena
    place 644 README.md "$doc/README.md"
    {
        printf 'flarena is licensed under the Apache License, Version 2.0: /usr/share/common-licenses/Apache-2.0\n\n'
        cat "$release/THIRD-PARTY-LICENSES"
    } >"$tree/$doc/copyright"
    place 644 CHANGELOG.md "$doc/changelog"
    mkdir -p "$tree/usr/share/man/man1"
    "$own" man --dir "$tree/usr/share/man/man1"
    gzip -9n "$tree/$doc/changelog" "$tree"/usr/share/man/man1/*
    mkdir -p "$tree"/usr/share/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    "$own" completions bash >"$tree/usr/share/bash-completion/completions/flarena"
    "$own" completions zsh >"$tree/usr/share/zsh/vendor-completions/_flarena"
    "$own" completions fish >"$tree/usr/share/fish/vendor_completions.d/flarena.fish"
}

control() {
    mkdir -p "$tree/DEBIAN"
    cat >"$tree/DEBIAN/control" <<END
Package: flarena
Version: $version
Architecture: $debian
Section: utils
Priority: optional
Maintainer: $maintainer${homepage:+
Homepage: ${homepage%/}}
Depends: libc6 (>= 2.17)
Suggests: python3
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$tree" | cut -f1)
Description: keeps the memory of federated learning jobs flat
 A shared library that is preloaded into NVIDIA FLARE, PyTorch and Python
 processes. It selects jemalloc or glibc's malloc, recycles the pages of large
 blocks, gives idle memory back to the system and marks resident memory for
 each stage and round. The command flarena starts, explains and reports.
END
    (cd "$tree" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
}

program_files
documents
control
mkdir -p build/dist
dpkg-deb --root-owner-group -Zxz --build "$tree" "build/dist/flarena_${version}_$debian.deb"
