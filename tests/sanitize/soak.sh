#!/usr/bin/env bash
# The unit tests under Miri (what is undefined in Rust) and under ThreadSanitizer (accesses without order). Both need a
# nightly toolchain: `rustup toolchain install nightly --component miri,rust-src`.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT" || exit 1

# Miri is some hundred times slower: few cases of each property, and without its model of borrows, which walks
# a megabyte of pointers at each look into the pagemap. Options and inputs that live as long as the process are leaked.
MIRI='-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-stacked-borrows'

miri() { # CRATE [TESTS...]
    PROPTEST_CASES=2 MIRIFLAGS=$MIRI cargo +nightly miri test --quiet --locked --target-dir target/miri -p "$1" --lib -- "${@:2}"
}

tsan() { # CRATE
    PROPTEST_CASES=20 RUSTFLAGS=-Zsanitizer=thread cargo +nightly test --quiet --locked -Zbuild-std \
        --target "$(uname -m)-unknown-linux-gnu" --target-dir target/tsan -p "$1" --lib
}

has() { # COMPONENT
    rustup component list --toolchain nightly 2>/dev/null | grep -q "^$1.*(installed)"
}

if has miri && has rust-src; then
    check "the parsers and the settings do nothing undefined" miri flarena-shared
    # Not what asks the real kernel, which Miri does not know, nor random walks, which would take days.
    check "the recycler and the lock do nothing undefined" miri flarena-shim recycler:: process::lock \
        --skip blocks_keep --skip refusals_of --skip threads_lose --skip huge_tests
else
    skip "the unit tests do nothing undefined" "a nightly Rust with miri and rust-src is needed"
fi
if has rust-src; then
    check "no unit test of the library has a data race" tsan flarena-shim
else
    skip "no unit test of the library has a data race" "a nightly Rust with rust-src is needed"
fi
finish
