# shellcheck shell=bash
# The harness of every suite: tests/X/run.sh sources this file, checks things, and ends with `finish`.
#
# One line per test goes to stdout: `ok - sentence`, `not ok - sentence` (then what was seen,
# indented), `skip - sentence (why)`. A checked command that exits 77 is skipped; the last line
# it printed says why. A checked function runs in a subshell under `set -e`: each of its lines
# is an assertion.

set -uo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Another build of the library, for example the release build, can be put to the test.
LIB=${FLARENA_TEST_LIB:-$ROOT/target/release/libflarena.so}
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/flarena-test.XXXXXX")
export ROOT LIB SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT

# When set, in_mode and without_preload end a command that takes more seconds than this.
COMMAND_TIMEOUT=
# For an emulated processor.
export TIMEOUT_FACTOR=${TIMEOUT_FACTOR:-1}
# A program lives on after a defect in the library's thread: only this line tells.
OWN_DEFECT='flarena: an internal error \([^ ]+\.rs:[0-9]+\)'
# Shown output is cut here: a runaway program must not bury the report.
MAX_SHOWN_LINES=60
PASSED=0
FAILED=0
SKIPPED=0

[ -e "$LIB" ] || (cd "$ROOT" && cargo build --release --quiet) || exit 1

# What goes wrong leaves processes behind: those that name the scratch folder are ours.
kill_leftovers() {
    local file
    for file in /proc/[0-9]*/cmdline; do
        if grep -qsaF "$SCRATCH/" "$file"; then kill -KILL "$(basename "$(dirname "$file")")" 2>/dev/null; fi
    done
}

pass() { # SENTENCE
    PASSED=$((PASSED + 1))
    printf 'ok - %s\n' "$1"
}

fail() { # SENTENCE [DETAILS]
    FAILED=$((FAILED + 1))
    printf 'not ok - %s\n' "$1"
    [ -z "${2-}" ] || printf '%s\n' "$2" | head -n "$MAX_SHOWN_LINES" | sed 's/^/    /'
}

skip() { # SENTENCE WHY
    SKIPPED=$((SKIPPED + 1))
    printf 'skip - %s (%s)\n' "$1" "$2"
}

check() { # SENTENCE COMMAND...: ok when the command exits 0
    local sentence=$1 output status=0
    shift
    # A file, not $(...): a background process that keeps stdout open must not hang the suite.
    (
        set -e
        "$@"
    ) </dev/null >"$SCRATCH/.output" 2>&1
    status=$?
    output=$(tr -d '\0' <"$SCRATCH/.output")
    [[ ! $output =~ $OWN_DEFECT ]] || status=70
    case $status in
        0) pass "$sentence" ;;
        77) skip "$sentence" "${output##*$'\n'}" ;;
        *) fail "$sentence" "exit status $status: $*"$'\n'"$output" ;;
    esac
}

check_output() { # SENTENCE EXPECTED COMMAND...: ok when it exits 0 and prints exactly this on stdout and stderr
    local sentence=$1 expected=$2 output status=0
    shift 2
    (
        set -e
        "$@"
    ) </dev/null >"$SCRATCH/.output" 2>&1
    status=$?
    output=$(tr -d '\0' <"$SCRATCH/.output")
    if [ "$status" -eq 0 ] && [ "$output" = "$expected" ]; then
        pass "$sentence"
    elif [ "$status" -eq 77 ]; then
        skip "$sentence" "${output##*$'\n'}"
    else
        fail "$sentence" "exit status $status: $*"$'\n'"expected: $expected"$'\n'"seen:     $output"
    fi
}

# qemu's user mode lets a kernel run programs of another processor, and answers some system calls by itself. It hides
# itself from the process that reads its own name only.
under_qemu() {
    [[ $(readlink "/proc/$$/exe") == *qemu-* ]]
}

unless_qemu() { # WHY check|check_output SENTENCE ...: skipped where qemu's user mode would be tested
    local why=$1
    shift
    if under_qemu; then skip "$2" "qemu's user mode $why"; else "$@"; fi
}

finish() { # the summary of this suite; its status is the suite's
    local told
    told=$(grep -rhsaE "$OWN_DEFECT" "$SCRATCH")
    [ -z "$told" ] || fail "the library met no defect of its own" "$told"
    printf '# %d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
    [ "$FAILED" -eq 0 ]
}

split_at_dashes() { # [WORD...] -- [WORD...]: into the arrays BEFORE and AFTER, which the caller makes local
    BEFORE=()
    while [ "${1-}" != -- ]; do
        [ $# -gt 0 ] || { echo "no -- behind ${BEFORE[*]}" >&2 && exit 2; }
        BEFORE+=("$1")
        shift
    done
    # shellcheck disable=SC2034  # the caller's
    AFTER=("${@:2}")
}

# The options for env that forget every setting which the caller's shell may hold.
clean_environment() {
    compgen -e | grep -E '^(FLARENA_|MALLOC_|NVFLARE_|_RJEM_|LD_PRELOAD$)' | sed 's/^/--unset=/'
}

in_mode() { # glibc|jemalloc [NAME=VALUE...] COMMAND...: runs it under the preload, other settings unset
    local mode=$1 preload=false unset_options
    shift
    [ "$mode" = jemalloc ] && preload=true
    mapfile -t unset_options < <(clean_environment)
    ${COMMAND_TIMEOUT:+timeout "$((COMMAND_TIMEOUT * TIMEOUT_FACTOR))"} env "${unset_options[@]}" LD_PRELOAD="$LIB" NVFLARE_ENABLE_JEMALLOC_PRELOAD=$preload "$@"
}

without_preload() { # [NAME=VALUE...] COMMAND...: the same, bare
    local unset_options
    mapfile -t unset_options < <(clean_environment)
    ${COMMAND_TIMEOUT:+timeout "$((COMMAND_TIMEOUT * TIMEOUT_FACTOR))"} env "${unset_options[@]}" "$@"
}

need() { # COMMAND [PACKAGE]: 0 when the command is there, installed by apt-get if it may
    local command=$1 package=${2:-$1}
    command -v "$command" >/dev/null && return
    install_packages "$package" && command -v "$command" >/dev/null
}

APT_LOCK=${TMPDIR:-/tmp}/flarena-apt-$(id -u).lock

torch_python() { # Debian's PyTorch for /usr/bin/python3, which other indexes have with gigabytes for GPUs only
    # Not while it is being installed.
    flock "$APT_LOCK" /usr/bin/python3 -c 'import torch' 2>/dev/null || install_packages python3-torch
}

install_packages() { # PACKAGE...: by apt-get, quietly; fails where that is not possible
    command -v apt-get >/dev/null || return 1
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    [ "$(id -u)" -eq 0 ] || { sudo -n true 2>/dev/null || return 1; apt=(sudo -n "${apt[@]}"); }
    # One at a time: scripts/ahead.sh installs, too. What has begun ends, whoever is told to end.
    (
        trap '' HUP INT TERM
        flock 9
        "${apt[@]}" install "$@" || { "${apt[@]}" update && "${apt[@]}" install "$@"; }
    ) >"$SCRATCH/.apt" 2>&1 9>"$APT_LOCK"
}
