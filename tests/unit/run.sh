#!/usr/bin/env bash
# The unit tests of all crates.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=scripts/first_dev_build.sh
. scripts/first_dev_build.sh
# Without -q: when one crate does not compile, the results of the others are shown.
cargo test --workspace --no-fail-fast 2>&1
