#!/usr/bin/env bash
# Runs a script of this suite, which defines the functions prepare, short and whole.
#
#   common.sh SCRIPT prepare|short|whole
set -uo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VENV=$HERE/../../build/venv-foreign

cannot() { # REASON: skips this program
    echo "$*"
    exit 77
}

packages() { # PACKAGE...
    # shellcheck disable=SC2016 # the inner shell expands them
    FLARENA_TEST_LIB=/dev/null bash -c '. "$1/../lib.sh"; install_packages "${@:2}"' _ "$HERE" "$@"
}

need() { # COMMAND [PACKAGE]
    command -v "$1" >/dev/null && return
    packages "${2:-$1}"
    command -v "$1" >/dev/null || cannot "no $1, and the package ${2:-$1} cannot be installed"
}

python_packages() { # PACKAGE...: into the environment of this suite
    [ -x "$VENV/bin/python" ] || python3 -m venv "$VENV" || cannot "no virtual environment can be made"
    "$VENV/bin/python" -m pip install -qq --disable-pip-version-check "$@" || cannot "pip cannot install $*"
}

# The tests that failed, and the number of each result.
junit_outcome() { # FILE
    python3 - "$1" <<'END'
import collections, sys, xml.etree.ElementTree as tree
count = collections.Counter()
for case in tree.parse(sys.argv[1]).iter("testcase"):
    result = next((kind for kind in ("failure", "error", "skipped") if case.find(kind) is not None), "passed")
    result = "skipped" if case.get("result") == "skipped" else result
    count[result] += 1
    if result not in ("passed", "skipped"):
        print(case.get("classname"), case.get("name"), result)
print(dict(sorted(count.items())))
END
}

# shellcheck source=/dev/null
. "$HERE/$1"
if [ "$2" = prepare ]; then
    # scripts/prefetch.sh and the suite may prepare at the same time, and some scripts share the environment.
    mkdir -p "${VENV%/*}"
    exec 8>"$VENV.lock"
    flock 8
else
    cd "$WORK" || exit 1
    # This shell was started like the programs below it: the library is loaded in both, or in neither.
    if [ -n "${FOREIGN_BARE-}" ] || [ -z "${FOREIGN_LIB-}" ]; then
        ! grep -q libflarena "/proc/$$/maps" || { echo "the library is loaded"; exit 1; }
    else
        grep -q "$FOREIGN_LIB" "/proc/$$/maps" || { echo "the library is not loaded"; exit 1; }
    fi
fi
"$2"
