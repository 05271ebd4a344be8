#!/usr/bin/env bash
# Downloads and builds what slow suites need, while the quick suites run: PyTorch, environments with NVFlare, the
# release build, Debian images, other programs. test.sh starts it, at a lower priority. Each step takes a lock, so a
# suite that comes early waits for the step, or does it itself.
#
#   scripts/prefetch.sh SUITE...
set -u
suites=" $* "
cd "$(dirname "$0")/.." || exit 1

# Where the kernel groups processes by session, the niceness of the session counts.
echo 5 2>/dev/null >/proc/self/autogroup
renice -n 5 $$ >/dev/null

needed_by() { # SUITE...
    local suite
    for suite; do [[ $suites != *" $suite "* ]] || return 0; done
    return 1
}

# Builds need the compiler, and run beside the downloads.
{
    if needed_by package docker; then scripts/build-release.sh "$(uname -m)"; fi
    if needed_by docker && timeout 20 docker info >/dev/null 2>&1; then
        for suite in bookworm bullseye trixie sid; do scripts/docker/base-image.sh "$suite"; done
        scripts/docker/nvflare-image.sh
    fi
} &
if needed_by nvflare; then for version in 2.9.0 2.7.2 2.9.1rc5; do scripts/venv.sh "$version"; done; fi
if needed_by pools recipes nvflare; then FLARENA_TEST_LIB=/dev/null bash -c '. tests/lib.sh; torch_python'; fi
if needed_by recipes; then FLARENA_TEST_LIB=/dev/null tests/recipes/run.sh --prepare; fi
if needed_by foreign; then FLARENA_TEST_LIB=/dev/null tests/foreign/run.sh --prepare; fi
wait
