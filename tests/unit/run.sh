#!/usr/bin/env bash
# The unit tests of all crates.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=scripts/first_dev_build.sh
. scripts/first_dev_build.sh
# Without -q: when one crate does not compile, the results of the others are shown. No crate has tests in its documents.
cargo test --workspace --all-targets --no-fail-fast 2>&1
