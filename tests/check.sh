# shellcheck shell=bash
# Test programs in C and C++, for the suites that have some. A program includes check.h and tests the behaviour that its
# first line states, or includes tests.h and has a TEST for each. It runs in both modes. `run.sh bare` runs it without
# the library, to show that its statement is true of glibc.
# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

COMMAND_TIMEOUT=240
MODES=(glibc jemalloc)
[ "${1-}" = bare ] && MODES=(bare)

# -fno-builtin: the compiler must not remove or merge the calls under test.
COMMON_FLAGS=(-D_GNU_SOURCE -O1 -g -Wall -Wextra -Wno-unused-parameter -Werror -fno-builtin -pthread -I "$ROOT/include" -I "$ROOT/tests")
C_FLAGS=(-std=gnu11 "${COMMON_FLAGS[@]}")
CXX_FLAGS=(-std=c++17 "${COMMON_FLAGS[@]}")

need gcc || fail "gcc is there" "install the package gcc"
need g++ || fail "g++ is there" "install the package g++"

sentence_of() { # SOURCE
    sed -n '1s,^// ,,p' "$1"
}

# For each TEST("SENTENCE") of the source `LINE SENTENCE`. A program of one test has its sentence in line 1.
tests_of() { # SOURCE
    awk -F '"' '/^TEST\("/ { print FNR, $2; found = 1 } END { exit !found }' "$1" || echo "1 $(sentence_of "$1")"
}

line_of() { # SOURCE WORDS: the line of the test whose sentence has these words
    tests_of "$1" | sed -n "s/ .*$2.*//p"
}

# Like check. Under qemu's user mode it is skipped when the line after the sentence is `// qemu's user mode REASON`.
check_source() { # SOURCE LINE SENTENCE COMMAND...
    local why
    why=$(sed -n "$(($2 + 1))s,^ *// qemu's user mode ,,p" "$1")
    if [ -n "$why" ]; then unless_qemu "$why" check "${@:3}"; else check "${@:3}"; fi
}

# The tests of a source in this mode, each in a process of its own.
check_tests_of() { # SOURCE MODE [NAME=VALUE...]
    local line sentence
    while read -r line sentence; do
        check_source "$1" "$line" "$2${3+, }${*:3}: $sentence" \
            run_program "$2" "$SCRATCH/${1%.*}" TEST_LINE="$line" "${@:3}"
    done < <(tests_of "$1")
}

compile() { # SOURCE PROGRAM [OPTION...]
    local source=$1 program=$2
    shift 2
    case $source in
        *.cpp) g++ "${CXX_FLAGS[@]}" "$source" -o "$program" "$@" -ldl ;;
        *) gcc "${C_FLAGS[@]}" "$source" -o "$program" "$@" -ldl ;;
    esac
}

build_stress() { # PROGRAM: the stress program, for the suites stress, faults and endurance
    gcc "${C_FLAGS[@]}" "$ROOT"/tests/stress/{stress,options,model,family,attributes,processes,failures}.c -o "$1" -ldl
}

compile_all() { # DIRECTORY [OPTION...]: to $SCRATCH/DIRECTORY, two at a time: compiling is the slowest part
    local directory=$1 source program jobs=0
    shift
    mkdir -p "$SCRATCH/$directory"
    for source in "$directory"/*.c "$directory"/*.cpp; do
        [ -e "$source" ] || continue
        program=$SCRATCH/${source%.*}
        compile "$source" "$program" "$@" >"$program.log" 2>&1 &
        jobs=$((jobs + 1))
        [ $((jobs % 2)) -eq 0 ] && wait
    done
    wait
}

run_as() { # glibc|jemalloc|bare [NAME=VALUE...] COMMAND...
    local mode=$1
    shift
    if [ "$mode" = bare ]; then
        without_preload TEST_MODE=bare "$@"
    else
        in_mode "$mode" TEST_MODE="$mode" "$@"
    fi
}

# Output on stderr is a failure: the library prints nothing by default.
run_program() { # MODE PROGRAM [NAME=VALUE...] [-- ARGUMENT...]
    local mode=$1 program=$2 BEFORE AFTER status=0
    split_at_dashes "${@:3}" --
    # The -- that was appended follows the arguments.
    [ "${#AFTER[@]}" -eq 0 ] || unset 'AFTER[-1]'
    run_as "$mode" "${BEFORE[@]}" "$program" "${AFTER[@]}" >/dev/null 2>"$SCRATCH/stderr" || status=$?
    cat "$SCRATCH/stderr"
    [ "$status" -ne 0 ] || [ ! -s "$SCRATCH/stderr" ] || status=99
    return "$status"
}

check_programs() { # DIRECTORY [OPTION...]: each of its programs in each mode
    local source mode
    compile_all "$@"
    for source in "$1"/*.c "$1"/*.cpp; do
        [ -e "$source" ] || continue
        if [ ! -x "$SCRATCH/${source%.*}" ]; then
            fail "$source compiles" "$(cat "$SCRATCH/${source%.*}.log")"
            continue
        fi
        for mode in "${MODES[@]}"; do check_tests_of "$source" "$mode"; done
    done
}

# A test of the recycler must fail without it.
fails_without_recycler() { # PROGRAM LINE
    local status attempt more=()
    # The environment's size moves glibc's heap. With some sizes a block of glibc passes the test by chance.
    for attempt in 1 2 3 4 5 6; do
        status=0
        run_program glibc "$1" TEST_LINE="$2" FLARENA_RECYCLE=off "${more[@]}" || status=$?
        more+=("ATTEMPT_$attempt=failed")
        case $status in
            77) return 77 ;; # this machine cannot run the test at all
            0 | 99 | 124) echo "attempt $attempt: exit status $status" ;;
            *) return 0 ;;
        esac
    done
    return 1
}

# Without the recycler, with the smallest blocks that it accepts, and with no pages kept.
check_with_other_recycler() { # SOURCE...: compiled before
    local mode setting source
    for mode in "${MODES[@]}"; do
        for setting in FLARENA_RECYCLE=off FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=0; do
            for source in "$@"; do check_tests_of "$source" "$mode" "$setting"; done
        done
    done
}
