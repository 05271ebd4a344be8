#!/usr/bin/env bash
# What is shipped: the portable build, the wheel and the Debian package, installed, used and removed.
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
    # Without its tools (zig, from the package index) nothing portable can be built here.
    if [ -x build/venv-release/bin/cargo-zigbuild ]; then
        fail "the portable build succeeds" "$(tail -n 30 "$SCRATCH/build.log")"
    else
        skip "the library, wheel and package that are shipped work" "zig and cargo-zigbuild cannot be installed"
    fi
    finish
    exit
fi
release=build/release/$(uname -m)
test_release
test_wheel
test_deb
finish
