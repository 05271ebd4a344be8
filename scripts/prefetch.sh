#!/usr/bin/env bash
# Downloads and builds what slow suites need, while the quick suites run: Debian images, the release build, environments
# with NVFlare, PyTorch, other programs. test.sh starts it. Each step takes a lock, so a suite that comes early waits for
# the step, or does it itself.
#
#   scripts/prefetch.sh SUITE...
set -u
suites=" $* "
cd "$(dirname "$0")/.." || exit 1

needed_by() { # SUITE...
    local suite
    for suite; do [[ $suites != *" $suite "* ]] || return 0; done
    return 1
}

# The suite docker takes longest, and waits for these: they run beside each other and beside the downloads.
if needed_by docker && timeout 20 docker info >/dev/null 2>&1; then
    {
        for suite in bookworm bullseye trixie sid; do scripts/docker/base-image.sh "$suite"; done
        scripts/docker/nvflare-image.sh
    } &
fi
if needed_by package docker; then scripts/build-release.sh "$(uname -m)" & fi
if needed_by nvflare; then for version in 2.9.0 2.7.2 2.9.1rc5; do scripts/venv.sh "$version"; done; fi
if needed_by pools recipes nvflare; then FLARENA_TEST_LIB=/dev/null bash -c '. tests/lib.sh; torch_python'; fi
if needed_by recipes; then FLARENA_TEST_LIB=/dev/null tests/recipes/run.sh --prepare; fi
if needed_by foreign; then FLARENA_TEST_LIB=/dev/null tests/foreign/run.sh --prepare; fi
wait
