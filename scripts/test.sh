#!/usr/bin/env bash
# Runs every test and ends with `N passed, N failed, N skipped`; exits 1 when any failed.
#
#   scripts/test.sh              all: lints, unit tests, then every tests/*/run.sh
#   scripts/test.sh c markers    only these suites (lints and unit are suites too)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

# No suite hangs the run: the slowest one takes a few minutes.
SUITE_TIMEOUT=20m
# shellcheck source=scripts/counted.sh
. scripts/counted.sh
# Leaders of the sessions that run beside us, to be ended as wholes.
AHEAD=
BESIDE=
BESIDE_DIR=build/beside
trap 'rm -f "$LOG"; kill_beside' EXIT

kill_beside() {
    local leader
    for leader in $AHEAD $BESIDE; do
        kill -- "-$leader" 2>/dev/null
    done
}

shell_files() {
    git ls-files -co --exclude-standard | while IFS= read -r file; do
        [ -f "$file" ] || continue
        case $file in
            *.sh) printf '%s\0' "$file" ;;
            *) if head -n 1 "$file" | grep -qaE '^#!.*\b(ba|da)?sh\b'; then printf '%s\0' "$file"; fi ;;
        esac
    done
}

shellcheck_all() {
    shell_files | xargs -0 shellcheck -x -P SCRIPTDIR
}

suite_lints() {
    # shellcheck source=tests/lib.sh
    . tests/lib.sh
    need shellcheck || fail "shellcheck is installed" "install the package shellcheck"
    rustup component add rustfmt clippy >/dev/null 2>&1
    check "the Rust code is formatted" cargo fmt --all --check
    check "clippy has nothing to say" cargo clippy --quiet --workspace --all-targets -- -D warnings
    check "shellcheck has nothing to say" shellcheck_all
    check "sub_start.sh, the small fallback, has at most 80 lines" test "$(wc -l <sub_start.sh)" -le 80
    check "no import circle and no call upward" python3 scripts/lints/imports.py
    check "the import check finds a circle and a call upward" python3 scripts/lints/imports_test.py
    check "every SAFETY comment says a fact" python3 scripts/lints/safety.py
    check "the check of SAFETY comments finds those without a fact" python3 scripts/lints/safety_test.py
    check "licences, versions and sources of other people's crates are those of deny.toml" python3 scripts/lints/dependencies.py
    check "every link and path in the documents leads somewhere" python3 scripts/lints/links.py
    check "SECURITY.md names every request of the control channel and every file of the kernel that is read" python3 scripts/lints/security.py
    finish
}

suite_unit() {
    # A library that fails to build must not hide what the unit tests say, hence no -q.
    cargo test --workspace --no-fail-fast 2>&1
}

run_script() { # NAME
    timeout --kill-after=30 "$SUITE_TIMEOUT" "tests/$1/run.sh"
}

run_suite() { # NAME
    case $1 in
        lints | unit) run_counted suite "$1" "suite_$1" ;;
        *) run_counted suite "$1" run_script "$1" ;;
    esac
}

# They wait nine tenths of their time and leave the machine's settings alone.
WAITING_SUITES='garbage governor recipes'

start_beside() { # SUITE...: one after the other, each one's lines and exit status into files
    rm -rf "$BESIDE_DIR" && mkdir -p "$BESIDE_DIR"
    export SUITE_TIMEOUT BESIDE_DIR
    export -f run_script
    # shellcheck disable=SC2016  # the inner shell expands them
    setsid bash -c 'for suite; do
        SECONDS=0
        run_script "$suite" >"$BESIDE_DIR/$suite.log" 2>&1 </dev/null
        status=$?
        echo "# $SECONDS s, beside the others" >>"$BESIDE_DIR/$suite.log"
        echo "$status" >"$BESIDE_DIR/$suite.status"
    done' _ "$@" &
    BESIDE=$!
}

suite_beside() { # NAME: its lines, once it has ended
    local status=1
    while [ ! -s "$BESIDE_DIR/$1.status" ] && kill -0 "$BESIDE" 2>/dev/null; do sleep 0.2; done
    cat "$BESIDE_DIR/$1.log"
    read -r status <"$BESIDE_DIR/$1.status"
    return "$status"
}

# What waits runs beside what computes, but not beside cli: its screen shows every process with a control channel.
run_all() {
    local suite
    for suite in "${suites[@]}"; do
        [[ " $WAITING_SUITES " != *" $suite "* ]] || continue
        run_suite "$suite"
        # shellcheck disable=SC2086  # words
        [ "$suite" != cli ] || start_beside $WAITING_SUITES
    done
    for suite in $WAITING_SUITES; do
        run_counted suite "$suite" suite_beside "$suite"
    done
}

# They download, build and wait for what ahead.sh makes meanwhile: last.
SLOW_SUITES='nvflare package foreign docker'

all_suites() {
    local script name
    echo lints unit
    for script in tests/*/run.sh; do
        name=$(basename "$(dirname "$script")")
        [[ ! -x $script || " $SLOW_SUITES " == *" $name "* ]] || echo "$name"
    done
    echo "$SLOW_SUITES"
}

make_ahead() { # SUITE...: if one of them needs it
    local suite
    for suite; do
        [[ " $SLOW_SUITES " == *" $suite "* ]] || continue
        mkdir -p build
        setsid scripts/ahead.sh "$@" >build/ahead.log 2>&1 </dev/null &
        AHEAD=$!
        return
    done
}

# What the build itself needs; the suites install the rest.
missing_packages() {
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v make >/dev/null || echo make
    command -v python3 >/dev/null || echo python3 python3-venv
    command -v pgrep >/dev/null || echo procps
}

install_missing() {
    local missing
    mapfile -t missing < <(missing_packages | xargs -r -n 1)
    [ ${#missing[@]} -eq 0 ] && return
    # No library yet: the harness need not build one to install packages.
    # shellcheck disable=SC2016  # the inner shell expands them
    FLARENA_TEST_LIB=/dev/null bash -c '. tests/lib.sh; install_packages "$@"' _ "${missing[@]}" ||
        { echo "missing: ${missing[*]}. Install them, then run this again"; exit 1; }
}

# shellcheck source=/dev/null
command -v cargo >/dev/null || { [ ! -r "$HOME/.cargo/env" ] || . "$HOME/.cargo/env"; }
command -v cargo >/dev/null || {
    echo "cargo is missing: install Rust (https://rustup.rs), then run this again"
    exit 1
}
[ $# -gt 0 ] || mapfile -t suites < <(all_suites | tr ' ' '\n')
[ $# -eq 0 ] || suites=("$@")
for suite in "${suites[@]}"; do
    [ -x "tests/$suite/run.sh" ] || [ "$suite" = lints ] || [ "$suite" = unit ] ||
        { printf 'no such suite: %s; there are: %s\n' "$suite" "$(all_suites | xargs)"; exit 1; }
done
install_missing
cargo build --release || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
make_ahead "${suites[@]}"
if [ $# -eq 0 ]; then
    run_all
else
    for suite in "${suites[@]}"; do
        run_suite "$suite"
    done
fi
finish_counted
