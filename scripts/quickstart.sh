#!/usr/bin/env bash
# quickstart.sh: builds flarena and shows its effect on an NVFlare job on this machine.
#
# The same FedAvg job runs twice: with plain glibc, then with flarena in jemalloc mode. It has two sites with an external
# trainer each, and a model of eight NumPy arrays. The report of the second run says whether its processes are flat.
# Then the report finds the leak of a program that leaks on purpose. All of it takes a few minutes. Files are written to
# build/ and target/ only, and report.html has charts of the second run.
set -euo pipefail

MEGABYTES=24
ROUNDS=20 # a verdict needs 8 rounds after the warm-up, and some more with garbage collections
LEAKY_ROUNDS=16
NVFLARE=2.9.0
STAGES=$((ROUNDS * 2 * 3)) # two sites record three stages in each round
JOB_LIMIT_S=900 # a slow machine needs some minutes; a job that hangs is killed

root=$(cd "$(dirname "$0")/.." && pwd)
here=$root/scripts/quickstart
work=$root/build/quickstart
report=$root/report.html

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then bold=$'\033[1m' plain=$'\033[0m'; else bold='' plain=''; fi
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
die() { printf '\nquickstart.sh: %s\n' "$*" >&2; exit 1; }

missing_packages() {
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v make >/dev/null || echo make
    command -v python3 >/dev/null || echo python3 python3-venv
    if command -v python3 >/dev/null && ! python3 -c 'import ensurepip' 2>/dev/null; then echo python3-venv; fi
}

install_missing() {
    local missing run=()
    missing=$(missing_packages | xargs)
    [ -n "$missing" ] || { echo "    all installed"; return; }
    command -v apt-get >/dev/null || die "these are missing, please install them: $missing"
    if [ "$(id -u)" -ne 0 ]; then
        # A script must not stop for a password.
        sudo -n true 2>/dev/null || die "missing: $missing. Run 'sudo apt-get install $missing', then this again"
        run=(sudo -n)
    fi
    echo "    installing $missing"
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

run_job() { # NAME COMMAND...: COMMAND starts the job; measure.py measures it
    local folder=$work/$1
    shift
    rm -rf "$folder"
    mkdir -p "$folder"
    local status=0
    bare "$python" "$here/measure.py" "$folder" $STAGES $JOB_LIMIT_S "$@" "$python" "$here/job.py" $MEGABYTES $ROUNDS "$folder" ||
        status=$?
    [ "$status" -eq 0 ] || {
        tail -n 15 "$folder/job.log"
        [ "$status" -ne 124 ] || die "the job did not end within $JOB_LIMIT_S s and was stopped; its log is $folder/job.log"
        die "the job failed; its log is $folder/job.log"
    }
    [ "$(wc -l <"$folder/stages.jsonl")" -eq $STAGES ] || die "the job ended early; its log is $folder/job.log"
}

case ${1:-} in
'') ;;
-h | --help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; exit ;;
*) die "takes no arguments" ;;
esac
mkdir -p "$work"

step "1/6  Requirements"
install_missing
check_rust
step "2/6  Building flarena"
(cd "$root" && cargo build --release) || die "the build failed: see above"
step "3/6  NVFlare $NVFLARE in a virtual environment"
python=$("$root/scripts/venv.sh" $NVFLARE)/bin/python
echo "    $("$python" -c 'import nvflare, numpy, sys; print(f"Python {sys.version.split()[0]}, NumPy {numpy.__version__}")')"
step "4/6  The job on plain glibc: $MEGABYTES MB model, 2 sites, $ROUNDS rounds"
run_job glibc
step "5/6  The same job: flarena run --allocator jemalloc"
markers=$work/flarena/markers.jsonl
run_job flarena "$root/target/release/flarena" run --allocator jemalloc --marker-file "$markers" --

"$python" "$here/table.py" "$work/glibc" "$work/flarena"
"$python" "$here/picture.py" "$work/glibc" "$work/flarena" "$work/memory.svg"

"$root/target/release/flarena" report --html "$report" "$markers" >"$work/report.txt" ||
    die "the report failed; the markers are in $markers"
echo
sed '/^$/q' "$work/report.txt"

step "6/6  A deliberate leak: scripts/quickstart/leak.py keeps every update"
rm -f "$work/leak.jsonl"
bare "$root/target/release/flarena" run --sites --marker-file "$work/leak.jsonl" -- \
    "$python" "$here/leak.py" $LEAKY_ROUNDS 2>"$work/leak.log" ||
    die "it failed; its output is in $work/leak.log"
"$root/target/release/flarena" report "$work/leak.jsonl"
echo
printf '  %-9s%s\n' Charts "$report" Picture "$work/memory.svg" Tables "$work/report.txt" Markers "$markers"
