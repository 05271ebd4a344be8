#!/usr/bin/env bash
# venv.sh NVFLARE_VERSION: print the path of a ready virtual environment with that nvflare, making it when missing.
#   PYTHON=/usr/bin/python3 scripts/venv.sh 2.9.0     another interpreter (its environment is kept apart)
#   scripts/venv.sh NAME REQUIREMENT...               other packages, for example: venv.sh dask-2026.8.0 dask==2026.8.0
# Only the path goes to stdout; everything else goes to stderr.
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

# Debian's python3 comes without ensurepip, and then `python3 -m venv` makes half an environment.
need_ensurepip() {
    "$python" -c 'import ensurepip' 2>/dev/null && return
    local package
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    command -v apt-get >/dev/null || die "$python has no ensurepip: install its venv package"
    [ "$(id -u)" -eq 0 ] || die "$python has no ensurepip: run 'sudo apt-get install $package', then again"
    say "installing $package"
    { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install "$package"; } >&2 ||
        die "apt-get could not install $package"
}

make_venv() {
    need_ensurepip
    say "making $name (${requirements[*]})"
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check "${requirements[@]}" >&2 || {
        rm -rf "$venv"
        die "pip could not install ${requirements[*]}: see above (no such version, or no network?)"
    }
    : >"$venv/.ready"
}

mkdir -p "$root/build"
# Two suites may ask at the same time: the second waits, then finds it ready. flock frees the lock if we die.
exec 9>"$root/build/.$name.lock"
command -v flock >/dev/null && flock 9
# .ready is written last: an interrupted make is made again. The interpreter is tried because a checkout may move.
if [ ! -e "$venv/.ready" ] || ! "$venv/bin/python" -c 'pass' 2>/dev/null; then make_venv; fi
printf '%s\n' "$venv"
