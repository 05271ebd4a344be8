#!/usr/bin/env bash
# Builds the wheel from the files of scripts/build-release.sh.
#
#   scripts/build-wheel.sh [ARCHITECTURE]      this machine's by default
#
# Result: build/dist/flarena-VERSION-py3-none-manylinux2014_ARCHITECTURE.whl
set -euo pipefail
cd "$(dirname "$0")/.."

architecture=${1:-$(uname -m)}
tools=$PWD/build/venv-release/bin
wheel_dir=$PWD/build/dist
if ! [ -x "$tools/hatchling" ] || ! [ -f "build/release/$architecture/flarena" ]; then
    echo "build-wheel: there is no release build for $architecture: run scripts/build-release.sh $architecture first" >&2
    exit 1
fi

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH FLARENA_WHEEL_ARCHITECTURE=$architecture
umask 022 # a wheel contains the modes of its files
rm -f "$wheel_dir"/flarena-*"_$architecture.whl"
"$tools/hatchling" build --target wheel --directory "$wheel_dir"
