#!/usr/bin/env bash
# quickstart.sh: builds flarena and shows its effect on an NVFlare job on this machine.
#
# `flarena compare` runs the same FedAvg job plain, with the system's jemalloc, and on flarena in both modes, three times
# each. The job has two sites with an external trainer each, and a model of eight NumPy arrays. Then the report finds the
# leak of a program that leaks on purpose. The build takes 3 to 5 minutes on two cores. Files are written to
# build/ and target/ only; packages that are missing are installed with apt-get.
set -euo pipefail

MEGABYTES=64
ROUNDS=4
RUNS=3
LEAKY_ROUNDS=16
NVFLARE=2.9.0

root=$(cd "$(dirname "$0")/.." && pwd)
here=$root/scripts/quickstart
work=$root/build/quickstart
flarena=$root/target/release/flarena

step() { printf '%-50s' "$*"; }
die() { printf '\nquickstart.sh: %s\n' "$*" >&2; exit 1; }

missing_packages() {
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v make >/dev/null || echo make
    command -v python3 >/dev/null || echo python3 python3-venv
    if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then echo python3-venv; fi
}

has_jemalloc() { compgen -G "/usr/lib*/libjemalloc.so.2" || compgen -G "/usr/lib/*/libjemalloc.so.2"; } >/dev/null

install_missing() {
    local missing run=()
    missing=$(missing_packages | xargs)
    if ! has_jemalloc && command -v apt-get >/dev/null; then
        if [ -n "$missing" ] || [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; then missing+=" libjemalloc2"; fi
    fi
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || die "these are missing, please install them: $missing"
    if [ "$(id -u)" -ne 0 ]; then
        # A script must not stop for a password.
        sudo -n true 2>/dev/null || die "missing: $missing. Run 'sudo apt-get install $missing', then this again"
        run=(sudo -n)
    fi
    # shellcheck disable=SC2086 # a list of packages
    { "${run[@]}" apt-get -q update && "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qy install $missing; } \
        >"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log"; die "apt-get could not install $missing"; }
}

check_rust() {
    local wanted have
    # A shell that was started before rustup was installed does not have its PATH.
    # shellcheck source=/dev/null
    command -v cargo >/dev/null || { [ ! -r "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"; }
    command -v cargo >/dev/null || die "cargo is missing: install Rust from https://rustup.rs, then run this again"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    have=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$wanted" "${have%%-*}" | sort -V | head -n 1)" = "$wanted" ] ||
        die "Rust $wanted or newer is needed, this is $have: run 'rustup update', or install Rust from https://rustup.rs"
}

# Runs a command without the caller's settings of flarena, NVFlare and malloc.
bare() {
    local names
    names=$(compgen -e | grep -E '^(FLARENA_|MALLOC_|NVFLARE_|LD_PRELOAD$|PYTHONPATH$)' | sed 's/^/--unset=/' || true)
    # shellcheck disable=SC2086 # a list of options without spaces
    env $names "$@"
}

case ${1:-} in
'') ;;
-h | --help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; exit ;;
*) die "takes no arguments" ;;
esac
mkdir -p "$work"

step "1/5 Packages and Rust"
install_missing
check_rust
cargo --version | cut -d " " -f 1-2
step "2/5 Building flarena (some minutes)"
(cd "$root" && cargo build --release) >"$work/cargo.log" 2>&1 || { tail -n 30 "$work/cargo.log"; die "the build failed; its log is $work/cargo.log"; }
"$flarena" --version
step "3/5 NVFlare in a virtual environment"
python=$("$root/scripts/venv.sh" $NVFLARE 2>"$work/venv.log")/bin/python || { cat "$work/venv.log"; die "NVFlare cannot be installed"; }
"$python" -c 'import nvflare, sys; print(f"nvflare {nvflare.__version__}, Python {sys.version.split()[0]}")'
echo "4/5 Comparing: 2 sites, a model of $MEGABYTES MB, $ROUNDS rounds, $RUNS runs each"
rm -rf "$work/compare"
bare "$flarena" compare --runs $RUNS --dir "$work/compare" --html "$work/compare.html" -- \
    "$python" "$here/job.py" $MEGABYTES $ROUNDS "$work" >"$work/compare.txt" || die "the job failed: see above"
step "5/5 A deliberate leak, kept for the report"
rm -f "$work/leak.jsonl"
bare "$flarena" run --sites --marker-file "$work/leak.jsonl" -- "$python" "$here/leak.py" $LEAKY_ROUNDS 2>"$work/leak.log" ||
    die "it failed; its output is in $work/leak.log"
# Its progress would erase the line of this step.
"$flarena" report --html "$work/leak.html" "$work/leak.jsonl" >"$work/leak.txt" 2>>"$work/leak.log" ||
    die "the report failed; its output is in $work/leak.log"
printf '%s rounds\n\n' $LEAKY_ROUNDS

"$here/show.sh" "$work"
