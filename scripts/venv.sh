#!/usr/bin/env bash
# Prints the path of a virtual environment with a version of nvflare, and makes the environment if it is missing.
#
#   scripts/venv.sh 2.9.0                             with nvflare 2.9.0
#   PYTHON=/usr/bin/python3 scripts/venv.sh 2.9.0     with another interpreter, in a separate environment
#   scripts/venv.sh NAME REQUIREMENT...               with other packages: venv.sh dask-2026.8.0 dask==2026.8.0
#
# Only the path goes to stdout; messages go to stderr.
set -euo pipefail

say() { printf 'venv.sh: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

name=venv-${1:-}
[ $# -gt 0 ] || die "usage: venv.sh NVFLARE_VERSION, for example: venv.sh 2.9.0; or venv.sh NAME REQUIREMENT..."
requirements=("nvflare==$1" numpy)
[ $# -eq 1 ] || requirements=("${@:2}")
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)

command -v "$python" >/dev/null || die "no $python on the PATH: install Python 3.9 or newer, or set PYTHON"
python=$("$python" -c 'import sys; print(sys.executable)')

[ -z "${PYTHON:-}" ] || name+=-$("$python" -c 'import hashlib, sys; print(hashlib.sha256(sys.executable.encode()).hexdigest()[:8])')
venv=$root/build/$name

# Debian's python3 lacks ensurepip, and `python3 -m venv` then makes an incomplete environment.
need_ensurepip() {
    "$python" -c 'import ensurepip' 2>/dev/null && return
    local package
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    command -v apt-get >/dev/null || die "$python has no ensurepip: install its venv package"
    [ "$(id -u)" -eq 0 ] || die "$python has no ensurepip: run 'sudo apt-get install $package', then again"
    say "installing $package"
    # The lock is that of tests/lib.sh.
    (flock 8 && apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=300 install "$package") \
        >&2 8>"${TMPDIR:-/tmp}/flarena-apt-$(id -u).lock" || die "apt-get could not install $package"
}

make_venv() {
    local install=("$python" -m pip --python "$venv/bin/python" install)
    say "making $name (${requirements[*]})"
    rm -rf "$venv"
    # A pip of the interpreter saves some seconds: the environment needs none then. Older ones lack --python.
    if "$python" -c 'import pip; assert int(pip.__version__.split(".")[0]) >= 23' 2>/dev/null; then
        "$python" -m venv --without-pip "$venv" >&2
    else
        need_ensurepip
        "$python" -m venv "$venv" >&2
        install=("$venv/bin/python" -m pip install)
    fi
    "${install[@]}" -qq --disable-pip-version-check "${requirements[@]}" >&2 || {
        rm -rf "$venv"
        die "pip could not install ${requirements[*]}: see above (no such version, or no network?)"
    }
    : >"$venv/.ready"
}

mkdir -p "$root/build"
# Two suites may need it at the same time: the second waits. The kernel releases the lock when the script dies.
exec 9>"$root/build/.$name.lock"
command -v flock >/dev/null && flock 9
# .ready is written last, so an interrupted installation is repeated. The interpreter fails when the checkout has moved.
if [ ! -e "$venv/.ready" ] || ! "$venv/bin/python" -c 'pass' 2>/dev/null; then make_venv; fi
printf '%s\n' "$venv"
