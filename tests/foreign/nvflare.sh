# shellcheck shell=bash
# NVFlare passes the same unit tests as without the library
VERSION=2.9.0
SOURCES=$VENV/nvflare-$VERSION

prepare() {
    [ -d "$SOURCES/tests/unit_test" ] && return
    python_packages pytest
    timeout 120 "$VENV/bin/python" -m pip download -qq --disable-pip-version-check --no-deps --no-binary nvflare --dest "$VENV/sdist" \
        "nvflare==$VERSION" || cannot "nvflare $VERSION has no published sources, or their download takes more than two minutes"
    python_packages "nvflare==$VERSION"
    mkdir -p "$SOURCES" && tar -xf "$VENV"/sdist/nvflare-*.tar.gz -C "$SOURCES" --strip-components 1
    [ -d "$SOURCES/tests/unit_test" ] || cannot "the sources of nvflare $VERSION contain no tests"
}

tests() { # FOLDER
    PYTHONPATH=$SOURCES "$VENV/bin/python" -m pytest -q --continue-on-collection-errors -p no:cacheprovider --junit-xml results.xml "$SOURCES/tests/unit_test/$1" >log 2>&1 ||
        tail -n 40 log >&2
    junit_outcome results.xml
}

short() { tests fuel/utils; }
whole() { tests .; }
