#!/usr/bin/env bash
# Makes the Docker image flarena-test:nvflare: Debian bookworm with nvflare and the package that its Docker launcher needs,
# from the package index that pip uses. Python is where it is in an image of Python. It does nothing when the image exists.
#
#   scripts/docker/nvflare-image.sh [NVFLARE_VERSION]      (2.9.0)

set -euo pipefail

VERSION=${1:-2.9.0}
SUITE=bookworm
IMAGE_PYTHON=3.11 # bookworm's
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
WORK=$(cd "$HERE/../.." && pwd)/build/docker

is_current() {
    [ "$(docker image inspect -f '{{index .Config.Labels "flarena.recipe"}}' flarena-test:nvflare 2>/dev/null)" = "$RECIPE" ]
}

# pip installs wheels for the Python of the image, whichever Python it runs with.
install_packages() { # DIRECTORY
    local python=$WORK/pip-venv/bin/python
    [ -x "$python" ] || python3 -m venv "$WORK/pip-venv"
    "$python" -m pip install -q --disable-pip-version-check --target "$1" --only-binary=:all: \
        --python-version "$IMAGE_PYTHON" --implementation cp --platform manylinux_2_28_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 "nvflare==$VERSION" docker "numpy<3" >&2
    find "$1" -name tests -type d -prune -exec rm -rf {} +
}

dockerfile() {
    cat <<END
FROM flarena-test:$SUITE
COPY packages /usr/local/lib/python$IMAGE_PYTHON/dist-packages
RUN ln -s /usr/bin/python3 /usr/local/bin/python3 && ln -s python3 /usr/local/bin/python
LABEL flarena.recipe=$RECIPE
END
}

"$HERE/base-image.sh" "$SUITE"
RECIPE=$({ printf '%s ' "$VERSION"; docker image inspect -f '{{.Id}}' "flarena-test:$SUITE"; cat "${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-16)
exec 9>"$WORK/nvflare.lock" && flock 9
! is_current || exit 0
CONTEXT=$(mktemp -d "$WORK/nvflare.XXXXXX")
trap 'rm -rf "$CONTEXT"' EXIT
install_packages "$CONTEXT/packages"
dockerfile >"$CONTEXT/Dockerfile"
DOCKER_BUILDKIT=0 docker build -q -t flarena-test:nvflare "$CONTEXT" 2>&1 >/dev/null | grep -v 'DEPRECATED\|BuildKit\|Install the buildx\|^ *https\|^$' >&2 || true
is_current
