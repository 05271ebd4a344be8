#!/usr/bin/env bash
# flarena in containers: Debian images with four versions of glibc, memory limits, the examples in docker/,
# and a federation that loses a client.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/lib.sh
. ../lib.sh
# shellcheck source=tests/docker/images.sh
. ./images.sh

if ! timeout 20 docker info >/dev/null 2>&1; then
    skip "flarena works in containers" "no Docker engine answers"
    finish
    exit
fi
remove_containers() { docker ps -aq --filter "label=$RUN" | xargs -r docker rm -f >/dev/null 2>&1; }
RUN=flarena-test-run=$$
trap 'remove_containers; rm -rf "$SCRATCH"' EXIT
chmod 755 "$SCRATCH" # other users read in it

check "the release library and command build" build_release
# shellcheck source=tests/docker/matrix.sh
. ./matrix.sh
# shellcheck source=tests/docker/examples.sh
. ./examples.sh
# shellcheck source=tests/docker/limits.sh
. ./limits.sh
# shellcheck source=tests/docker/federation.sh
. ./federation.sh
finish
