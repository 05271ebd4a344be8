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
# These compile, and start no program with the library.
COMPILING_SUITES='lints unit'
# These run one after the other before the others start: cli looks at all processes of the machine, folios changes its huge
# pages.
export ALONE_SUITES='cli folios'
# Of the others these start first, because they take minutes. scripts/prefetch.sh prepares some of them.
SLOW_SUITES='docker nvflare package garbage faults governor sites c pools foreign fork recipes recycler'
FIRST_SUITES="$COMPILING_SUITES $ALONE_SUITES $SLOW_SUITES"

# So many of the others run at once, and more while 4 GB and a fifth of the processors' time are free: suites wait for a
# decay, a round, a container.
export AT_ONCE=$((2 * $(nproc))) MOST_AT_ONCE=$((4 * $(nproc)))

export RESULTS=build/test-results
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
    xargs -n 1 <<<"$FIRST_SUITES"
    for script in tests/*/run.sh; do
        name=$(basename "$(dirname "$script")")
        contains "$FIRST_SUITES" "$name" || echo "$name"
    done
}

# The file has all processors of the host, of which this script may use fewer. Those that wait for a disk are busy.
idle_ticks() { # of a processor on average, in hundredths of a second
    awk '/^cpu[0-9]/ { idle += $5; count++ } END { print int(idle / count) }' /proc/stat
}

available_mb() { awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo; }

may_start() { # whether another suite may start now
    local running before
    running=$(jobs -rp | wc -l)
    [ "$running" -ge "$AT_ONCE" ] || return 0
    before=$(idle_ticks)
    sleep 2
    [ "$running" -lt "$MOST_AT_ONCE" ] && [ "$(available_mb)" -gt 4096 ] && [ $(($(idle_ticks) - before)) -gt 40 ]
}

run_suite() { # SUITE: its output and its result to $RESULTS
    SECONDS=0
    scripts/suite.sh "$1" >"$RESULTS/$1.log" 2>&1
    echo "$? $SECONDS" >"$RESULTS/$1.new"
    mv "$RESULTS/$1.new" "$RESULTS/$1.status"
}

start_suites() { # SUITE...
    local suite
    for suite; do
        until may_start; do :; done
        run_suite "$suite" &
        ! contains "$ALONE_SUITES" "$suite" || wait $!
    done
    wait
}

run_at_once() { # SUITE...: shows the output of each once it has ended
    local suite status seconds
    rm -rf "$RESULTS"
    mkdir -p "$RESULTS"
    start_group bash -c "$(declare -f contains idle_ticks available_mb may_start run_suite start_suites); start_suites \"\$@\"" _ "$@"
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
    command -v python3 >/dev/null || echo python3
    python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
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
if [ -n "$at_once" ]; then
    run_at_once "${suites[@]}"
else
    for suite in "${suites[@]}"; do run_counted suite "$suite" scripts/suite.sh "$suite"; done
fi
finish_counted
