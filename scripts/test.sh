#!/usr/bin/env bash
# Runs every test and ends with `N passed, N failed, N skipped`; exits 1 when any failed.
#
#   scripts/test.sh              every tests/*/run.sh
#   scripts/test.sh --quick      the suites that most changes need
#   scripts/test.sh c markers    only these suites
#
# build/test-times.txt has the seconds of each suite.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

QUICK_SUITES='lints unit c recycler settings fork'
# These run alone: cli looks at all processes of the machine, folios changes its huge pages.
ALONE_SUITES='cli folios'
# Of the others these start first, because they take minutes. scripts/prefetch.sh prepares some of them: docker, package,
# recipes and foreign are ready last.
SLOW_SUITES='lints nvflare unit garbage governor pools c faults recycler package docker recipes foreign'

# So many of the others run at once. A quarter of their time they wait: for a decay, a round, a container.
AT_ONCE=$((2 * $(nproc)))

RESULTS=build/test-results
mkdir -p build
# shellcheck disable=SC2034  # counted.sh writes to it
TIMES=build/test-times.txt
# shellcheck source=scripts/counted.sh
. scripts/counted.sh
# The process groups that this script started in the background.
LEADERS=()
trap 'rm -f "$LOG"; end_groups' EXIT

# bash makes background commands ignore SIGINT, and the suites must not inherit that.
start_group() { # COMMAND...: runs it in the background, in a process group of its own
    (trap - INT QUIT && exec setsid "$@") </dev/null &
    LEADERS+=($!)
}

end_groups() {
    local leader
    for leader in "${LEADERS[@]}"; do
        kill -- "-$leader" 2>/dev/null
    done
}

contains() { # WORDS WORD
    [[ " $1 " == *" $2 "* ]]
}

all_suites() { # prints them in the order in which they start
    local script name
    xargs -n 1 <<<"$ALONE_SUITES $SLOW_SUITES"
    for script in tests/*/run.sh; do
        name=$(basename "$(dirname "$script")")
        contains "$ALONE_SUITES $SLOW_SUITES" "$name" || echo "$name"
    done
}

run_at_once() { # SUITE...: runs some at a time, and shows the output of each once it has ended
    local suite status seconds
    rm -rf "$RESULTS"
    mkdir -p "$RESULTS"
    export RESULTS
    # shellcheck disable=SC2016  # the inner shell expands them
    start_group xargs -a <(printf '%s\n' "$@") -P "$AT_ONCE" -I '{}' bash -c '
        scripts/suite.sh {} >"$RESULTS/{}.log" 2>&1
        echo "$? $SECONDS" >"$RESULTS/{}.new"
        mv "$RESULTS/{}.new" "$RESULTS/{}.status"'
    for suite; do
        while [ ! -e "$RESULTS/$suite.status" ] && kill -0 "${LEADERS[-1]}" 2>/dev/null; do sleep 0.5; done
        read -r status seconds 2>/dev/null <"$RESULTS/$suite.status" || { status=1 && seconds=0; }
        printf '## %s\n' "$suite"
        tee "$LOG" <"$RESULTS/$suite.log"
        count_results suite "$suite" "$status" "$seconds"
    done
}

# The build needs these; the suites install the rest.
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
    # FLARENA_TEST_LIB: tests/lib.sh must not build the library first.
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
at_once=yes
case ${1-} in
    '') mapfile -t suites < <(all_suites) ;;
    --quick) read -ra suites <<<"$QUICK_SUITES" ;;
    *) suites=("$@") at_once= ;;
esac
for suite in "${suites[@]}"; do
    [ -x "tests/$suite/run.sh" ] || { printf 'no such suite: %s; there are: %s\n' "$suite" "$(all_suites | xargs)"; exit 1; }
done
install_missing
start_group scripts/prefetch.sh "${suites[@]}" >build/prefetch.log 2>&1
cargo build --release || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# For scripts/first_dev_build.sh.
[ -d target/debug ] || export FIRST_DEV_BUILD=yes
: >"$TIMES"
others=()
for suite in "${suites[@]}"; do
    if [ -z "$at_once" ] || contains "$ALONE_SUITES" "$suite"; then
        run_counted suite "$suite" scripts/suite.sh "$suite"
    else
        others+=("$suite")
    fi
done
[ ${#others[@]} -eq 0 ] || run_at_once "${others[@]}"
finish_counted
