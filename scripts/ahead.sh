#!/usr/bin/env bash
# Makes what the slow suites need while the quick ones run: PyTorch, environments with NVFlare, Debian images, the
# release build, other people's programs. Started by test.sh; takes only the time that nobody else wants. Whoever
# makes one of these keeps the others out by a lock, so a suite that comes early waits for it, or makes it itself.
#
#   scripts/ahead.sh SUITE...
set -u
asked=" $* "
cd "$(dirname "$0")/.." || exit 1

# The niceness of a session counts where the kernel groups processes by session.
echo 19 2>/dev/null >/proc/self/autogroup
renice -n 19 $$ >/dev/null

[[ $asked != *" pools "* ]] || FLARENA_TEST_LIB=/dev/null bash -c '. tests/lib.sh; torch_python'
for version in 2.9.0 2.7.2; do
    scripts/venv.sh "$version"
done
scripts/build-release.sh "$(uname -m)"
if timeout 20 docker info >/dev/null 2>&1; then
    for suite in bookworm bullseye trixie sid; do
        scripts/docker/base-image.sh "$suite"
    done
fi
[[ $asked == *" foreign "* ]] || exit 0
for script in tests/foreign/*.sh; do
    case $script in */run.sh | */common.sh) ;; *) bash "$script" prepare ;; esac
done
