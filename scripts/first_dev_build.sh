# shellcheck shell=bash
# Sourced by the suites that build in the profile dev. The first such build of a checkout takes half as long without
# incremental compilation and with the jemalloc of the release build. Later builds have cargo's defaults, so that they
# share their results with a `cargo test` by hand. The price: the first of them compiles jemalloc, once.

use_jemalloc_of_release() {
    local library newest=
    for library in "$PWD"/target/release/build/tikv-jemalloc-sys-*/out/lib/libjemalloc_pic.a; do
        [ ! -e "$library" ] || [ "$newest" -nt "$library" ] || newest=$library
    done
    [ -z "$newest" ] || export JEMALLOC_OVERRIDE=$newest
}

if [ "${FIRST_DEV_BUILD:-}" = yes ]; then
    export CARGO_INCREMENTAL=0
    use_jemalloc_of_release
fi
