#!/usr/bin/env bash
# The shipped files: the portable build, the wheel and the Debian package are installed, used and removed.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib.sh
. tests/lib.sh
# shellcheck source=tests/package/release.sh
. tests/package/release.sh
# shellcheck source=tests/package/wheel.sh
. tests/package/wheel.sh
# shellcheck source=tests/package/deb.sh
. tests/package/deb.sh

if ! scripts/build-release.sh "$(uname -m)" >"$SCRATCH/build.log" 2>&1; then
    # The portable build needs zig from the package index.
    if [ -x build/venv-release/bin/cargo-zigbuild ]; then
        fail "the portable build succeeds" "$(tail -n 30 "$SCRATCH/build.log")"
    else
        skip "the shipped library, wheel and package work" "zig and cargo-zigbuild cannot be installed"
    fi
    finish
    exit
fi
release=build/release/$(uname -m)
test_release
test_wheel
test_source
test_deb
finish
