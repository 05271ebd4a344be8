#!/usr/bin/env bash
# Runs the unit tests under Miri (undefined behaviour) and ThreadSanitizer (data races). Both need a nightly toolchain:
# `rustup toolchain install nightly --component miri,rust-src`.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT" || exit 1

# Miri is some hundred times slower, hence few cases of each property. Its borrow checker would walk a megabyte of
# pointers at each read of the pagemap. Options and inputs that live as long as the process count as leaks.
MIRI='-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-stacked-borrows'

miri() { # CRATE [TESTS...]
    PROPTEST_CASES=2 MIRIFLAGS=$MIRI cargo +nightly miri test --quiet --locked --target-dir target/miri -p "$1" --lib -- "${@:2}"
}

# Skipped: tests that compare addresses with those of libc's functions, which ThreadSanitizer replaces in the program.
tsan() { # CRATE
    PROPTEST_CASES=20 RUSTFLAGS=-Zsanitizer=thread cargo +nightly test --quiet --locked -Zbuild-std \
        --target "$(uname -m)-unknown-linux-gnu" --target-dir target/tsan -p "$1" --lib -- \
        --skip addresses_agree_with_the_symbol_tables --skip libc_function_in_the_loader_is_found
}

has() { # COMPONENT
    rustup component list --toolchain nightly 2>/dev/null | grep -q "^$1.*(installed)"
}

if has miri && has rust-src; then
    check "the parsers and the settings have no undefined behaviour" miri flarena-shared
    # Skipped: tests of the real kernel, which Miri does not emulate, and random walks, which would take days.
    check "the recycler has no undefined behaviour" miri flarena-recycler \
        --skip blocks_keep --skip refusals_of --skip threads_lose --skip huge_pages
    check "the lock has no undefined behaviour" miri flarena-sys sync::lock
else
    skip "the unit tests have no undefined behaviour" "a nightly Rust with miri and rust-src is needed"
fi
if has rust-src; then
    for crate in flarena-sys flarena-recycler flarena-sites flarena-shim; do
        check "no unit test of $crate has a data race" tsan "$crate"
    done
else
    skip "no unit test of the library has a data race" "a nightly Rust with rust-src is needed"
fi
finish
