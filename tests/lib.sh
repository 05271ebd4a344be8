# shellcheck shell=bash
# The harness of every suite: tests/NAME/run.sh sources this file, runs checks, and ends with `finish`.
#
# Each test prints one line: `ok - SENTENCE`, `not ok - SENTENCE` with the indented output below, or
# `skip - SENTENCE (REASON)`. A command that exits 77 is skipped, and its last line is the reason. A checked function
# runs in a subshell under `set -e`, so each of its lines is an assertion.

set -uo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# FLARENA_TEST_LIB names another build to test, for example the release build.
LIB=${FLARENA_TEST_LIB:-$ROOT/target/release/libflarena.so}
# suite.sh makes the folder. If the suite hangs, the report has the processes and logs of this folder.
SCRATCH=${TEST_SCRATCH:-$(mktemp -d "${TMPDIR:-/tmp}/flarena-test.XXXXXX")}
unset TEST_SCRATCH
export ROOT LIB SCRATCH
trap 'rm -rf "$SCRATCH"' EXIT

# When set, in_mode and without_preload kill a command after this many seconds.
COMMAND_TIMEOUT=
# Greater than 1 on an emulated processor.
export TIMEOUT_FACTOR=${TIMEOUT_FACTOR:-1}
# A program survives an internal error in the library's thread. So the suites search all output for this line.
OWN_DEFECT='flarena: an internal error \([^ ]+\.rs:[0-9]+\)'
# A runaway program must not flood the report.
MAX_SHOWN_LINES=60
PASSED=0
FAILED=0
SKIPPED=0

[ -e "$LIB" ] || (cd "$ROOT" && cargo build --release --quiet) || exit 1

# The python3 of pyenv is a script that runs several programs before each start of Python.
if head -c 2 "$(command -v python3)" 2>/dev/null | grep -q '^#!'; then PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH; fi

# shellcheck source=tests/hang.sh
. "$ROOT/tests/hang.sh"

# A job that goes wrong leaves processes behind.
kill_leftovers() { kill_processes_of "$SCRATCH/"; }

pass() { # SENTENCE
    PASSED=$((PASSED + 1))
    printf 'ok - %s\n' "$1"
}

fail() { # SENTENCE [DETAILS]
    FAILED=$((FAILED + 1))
    printf 'not ok - %s\n' "$1"
    [ -z "${2-}" ] || printf '%s\n' "$2" | head -n "$MAX_SHOWN_LINES" | sed 's/^/    /'
}

skip() { # SENTENCE REASON
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
    { output=$(<"$SCRATCH/.output"); } 2>/dev/null # bash warns of NUL bytes
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
    { output=$(<"$SCRATCH/.output"); } 2>/dev/null
    if [ "$status" -eq 0 ] && [ "$output" = "$expected" ]; then
        pass "$sentence"
    elif [ "$status" -eq 77 ]; then
        skip "$sentence" "${output##*$'\n'}"
    else
        fail "$sentence" "exit status $status: $*"$'\n'"expected: $expected"$'\n'"seen:     $output"
    fi
}

# qemu's user mode emulates a processor and some system calls. A process that reads its own /proc/self/exe sees its
# program there; another process sees qemu.
under_qemu() { # succeeds when this shell runs in qemu's user mode
    [[ $(readlink "/proc/$$/exe") == *qemu-* ]]
}

unless_qemu() { # REASON check|check_output SENTENCE ...: skips a test that would test qemu
    local why=$1
    shift
    if under_qemu; then skip "$2" "qemu's user mode $why"; else "$@"; fi
}

eventually() { # COMMAND...: repeats the command until it succeeds, for a minute at most
    local try
    for ((try = 0; try < 300; try++)); do
        "$@" >"$SCRATCH/eventually" 2>&1 && return
        sleep 0.2
    done
    echo "in vain: $*"
    cat "$SCRATCH/eventually"
    return 1
}

# The kernel gives ports from 32768 on to programs that ask for any port. Such a program cannot take the ports below
# before the server opens them.
free_ports() { # COUNT
    python3 -c 'if True:
        import random, socket, sys
        is_free = lambda port: socket.socket().connect_ex(("localhost", port))
        print(*[port for port in random.sample(range(20000, 32768), 50) if is_free(port)][:int(sys.argv[1])])' "$1"
}

finish() { # prints the summary; its status is the suite's
    local errors
    errors=$(grep -rhsaE "$OWN_DEFECT" "$SCRATCH")
    [ -z "$errors" ] || fail "the library reports no internal error" "$errors"
    printf '# %d passed, %d failed, %d skipped\n' "$PASSED" "$FAILED" "$SKIPPED"
    [ "$FAILED" -eq 0 ]
}

split_at_dashes() { # [WORD...] -- [WORD...]: sets the arrays BEFORE and AFTER, which the caller declares
    BEFORE=()
    while [ "${1-}" != -- ]; do
        [ $# -gt 0 ] || { echo "no -- behind ${BEFORE[*]}" >&2 && exit 2; }
        BEFORE+=("$1")
        shift
    done
    # shellcheck disable=SC2034  # the caller's
    AFTER=("${@:2}")
}

split_settings() { # [NAME=VALUE...] [WORD...]: sets the arrays SETTINGS and WORDS, which the caller declares
    SETTINGS=()
    while [[ ${1-} == [A-Z_]*=* ]]; do
        SETTINGS+=("$1")
        shift
    done
    # shellcheck disable=SC2034  # the caller's
    WORDS=("$@")
}

clean_environment() { # sets UNSET, which the caller declares, to the options of env that unset each setting of its shell
    UNSET=(LD_PRELOAD "${!FLARENA_@}" "${!MALLOC_@}" "${!NVFLARE_@}" "${!_RJEM_@}")
    UNSET=("${UNSET[@]/#/--unset=}")
}

in_mode() { # glibc|jemalloc [NAME=VALUE...] COMMAND...: runs it with the library; other settings are unset
    local mode=$1 preload=false UNSET
    shift
    [ "$mode" = jemalloc ] && preload=true
    clean_environment
    ${COMMAND_TIMEOUT:+timeout "$((COMMAND_TIMEOUT * TIMEOUT_FACTOR))"} env "${UNSET[@]}" LD_PRELOAD="$LIB" NVFLARE_ENABLE_JEMALLOC_PRELOAD=$preload "$@"
}

without_preload() { # [NAME=VALUE...] COMMAND...: runs it without the library; other settings are unset
    local UNSET
    clean_environment
    ${COMMAND_TIMEOUT:+timeout "$((COMMAND_TIMEOUT * TIMEOUT_FACTOR))"} env "${UNSET[@]}" "$@"
}

need() { # COMMAND [PACKAGE]: installs the package if the command is missing; fails where that is impossible
    local command=$1 package=${2:-$1}
    command -v "$command" >/dev/null && return
    install_packages "$package" && command -v "$command" >/dev/null
}

make_group() { # MEGABYTES: sets GROUP to a control group with this limit
    local groups=/sys/fs/cgroup/memory file=memory.limit_in_bytes
    [ -e $groups/$file ] || groups=/sys/fs/cgroup file=memory.max
    GROUP=$groups/flarena-test-$$
    if ! mkdir "$GROUP" 2>/dev/null || ! echo "$1M" 2>/dev/null >"$GROUP/$file"; then
        rmdir "$GROUP" 2>/dev/null
        echo "this user may not create a control group"
        return 77
    fi
}

in_new_group() { # MEGABYTES COMMAND...: runs it in a control group with this limit
    local status=0
    make_group "$1" || return
    (echo "$BASHPID" >"$GROUP/cgroup.procs" && "${@:2}") || status=$?
    rmdir "$GROUP"
    return "$status"
}

python_versions() { # PYTHON...: prints version and path of each environment that exists, from Python 3.9 on
    local python
    for python; do
        # Not sys.executable, which has several names for one environment.
        command -v "$python" >/dev/null && "$python" -c 'import sys
if sys.version_info >= (3, 9): print("{1}.{2} {0}/bin/python{1}.{2}".format(sys.prefix, *sys.version_info))'
    done | sort -u
}
every_python() { # prints version and path of each CPython of this machine
    python_versions python3 /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python
}

APT_LOCK=${TMPDIR:-/tmp}/flarena-apt-$(id -u).lock

# Other package indexes offer PyTorch only with gigabytes of GPU libraries.
torch_python() { # installs Debian's PyTorch for /usr/bin/python3
    # The lock: another process may be installing it.
    flock "$APT_LOCK" /usr/bin/python3 -c 'import torch' 2>/dev/null || install_packages python3-torch
}

install_packages() { # PACKAGE...: with apt-get, without output; fails where that is impossible
    command -v apt-get >/dev/null || return 1
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    [ "$(id -u)" -eq 0 ] || { sudo -n true 2>/dev/null || return 1; apt=(sudo -n "${apt[@]}"); }
    # One process at a time installs, and a signal does not interrupt it.
    (
        trap '' HUP INT TERM
        flock 9
        "${apt[@]}" install "$@" || { "${apt[@]}" update && "${apt[@]}" install "$@"; }
    ) >"$SCRATCH/.apt" 2>&1 9>"$APT_LOCK"
}
