#!/usr/bin/env bash
# Makes all files of a release in build/dist: a wheel and a Debian package for each architecture whose tools are installed,
# the source distribution, the SBOM (CycloneDX), and SHA256SUMS.
#
#   scripts/release.sh                  the architectures of scripts/build-release.sh
#   scripts/release.sh aarch64 ...      these and this machine's, or fail
#
# The same commit gives the same bytes in a folder of the same path. In another one the debug files differ, and with them
# one word of each library (scripts/build-release.sh).
#
# The public address and the maintainer are in the metadata of wheel, source distribution and Debian package, and the
# address in the SBOM, if these variables name them. Without them the metadata has no address:
#
#   FLARENA_PROJECT_URL=https://forge.example/flarena FLARENA_MAINTAINER='Name <name@example.org>' scripts/release.sh
set -euo pipefail
cd "$(dirname "$0")/.."

dist=build/dist
tools=$PWD/build/venv-release/bin
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH
umask 022

[ -z "$(git status --porcelain 2>/dev/null)" ] || echo "release: this tree has changes that no commit has" >&2
# Its command writes the manual of each Debian package.
[ $# -eq 0 ] || [[ " $* " == *" $(uname -m) "* ]] || set -- "$(uname -m)" "$@"
rm -rf "$dist"
mkdir -p "$dist"
scripts/build-release.sh "$@" | tee build/release.log
# It prints a line for each file of each architecture that it has built.
mapfile -t architectures < <(sed -n 's/^build-release: \([^:]*\): compiling .*/\1/p' build/release.log)
for architecture in "${architectures[@]}"; do
    scripts/build-wheel.sh "$architecture"
    if command -v dpkg-deb >/dev/null; then
        scripts/build-deb.sh "$architecture"
    else
        echo "release: no Debian package for $architecture: dpkg-deb is missing" >&2
    fi
done
"$tools/hatchling" build --target sdist --directory "$dist"
scripts/package/sbom.py "${architectures[@]/%/-unknown-linux-gnu}" >"$dist/flarena-$version.cdx.json"
(cd "$dist" && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
