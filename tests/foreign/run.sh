#!/usr/bin/env bash
# Programs of other projects, and their own tests, have the same outcome with the library as without it. Each runs with
# both allocators, and with both once more with settings that recycle the most blocks and keep the fewest pages.
#
#   tests/foreign/run.sh                    a short selection of each (FOREIGN=short)
#   FOREIGN=whole tests/foreign/run.sh      all of each: hours
#   tests/foreign/run.sh git redis          only these
#   tests/foreign/run.sh --prepare          downloads and installs what they need
#
# Each program has a script, whose second line is the test's sentence. Its function `prepare` installs the program; it
# exits with 77 and the reason where that is impossible. `short` and `whole` run it in an empty directory and print its
# outcome: the part of the output that is the same in each run. A line `without NAME` of `prepare` is reported as skipped.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/foreign" || exit 1
export FOREIGN=${FOREIGN:-short}
EAGER=(FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=1)
export COMMAND_TIMEOUT=600 WORK=$SCRATCH/work
[ "$FOREIGN" = short ] || COMMAND_TIMEOUT=7200

# Some programs refuse to run as root: their user must be able to read these files.
mkdir "$SCRATCH/library"
cp "$LIB" "$SCRATCH/library/libflarena.so"
LIB=$SCRATCH/library/libflarena.so
chmod 755 "$SCRATCH" "$SCRATCH/library"

outcome() { # RUNNER... -- SCRIPT MODE: what the script prints, and its exit status
    local BEFORE AFTER
    split_at_dashes "$@"
    rm -rf "$WORK"
    mkdir "$WORK"
    "${BEFORE[@]}" WORK="$WORK" FOREIGN_LIB="$LIB" bash common.sh "${AFTER[@]}" 2>"$SCRATCH/stderr"
    echo "exit status $?"
}

same_as_bare() { # SCRIPT RUNNER...
    local script=$1
    shift
    outcome "$@" -- "$script" "$FOREIGN" >"$SCRATCH/preloaded"
    if diff "$SCRATCH/bare" "$SCRATCH/preloaded"; then return; fi
    if [ "$FOREIGN" = short ] && has_results "$SCRATCH/bare" && has_results "$SCRATCH/preloaded"; then
        # Some of these tests have time limits, which a busy machine exceeds in either run.
        bare_works "$script"
        outcome "$@" -- "$script" "$FOREIGN" >"$SCRATCH/preloaded"
        if diff "$SCRATCH/bare" "$SCRATCH/preloaded"; then return; fi
    fi
    tail -n 30 "$SCRATCH/stderr"
    return 1
}

has_results() { # OUTCOME: of a project's own tests, all of which ran
    grep -q "^{'" "$1" && grep -qx 'exit status 0' "$1"
}

bare_works() { # SCRIPT
    outcome without_preload FOREIGN_BARE=1 -- "$1" "$FOREIGN" >"$SCRATCH/bare"
    grep -qx 'exit status 0' "$SCRATCH/bare"
}

# Without a baseline no mode can be compared. FOREIGN=whole promises all programs, so there it is a failure.
broken_baseline() { # NAME SENTENCE
    local seen
    seen="it failed twice without the library: $(tail -n 2 "$SCRATCH/bare" | xargs)"
    if [ "$FOREIGN" = short ]; then
        skip "$2" "$seen"
    else
        fail "$2" "$seen"$'\n'"$(tail -n 30 "$SCRATCH/stderr")"
    fi
}

check_foreign() { # NAME
    local script=$1.sh sentence why status name
    sentence=$(sed -n '2s/^# //p' "$script")
    why=$(without_preload WORK="$WORK" bash common.sh "$script" prepare 2>&1)
    status=$?
    case $status in
        0) while read -r name; do skip "$sentence: $name" "it is missing"; done < <(sed -n 's/^without //p' <<<"$why") ;;
        77) skip "$sentence" "$(tail -n 1 <<<"$why")"; return ;;
        *) fail "$sentence: its preparation succeeds" "$why"; return ;;
    esac
    # A busy machine may fail once.
    bare_works "$script" || bare_works "$script" || { broken_baseline "$1" "$sentence"; return; }
    for mode in glibc jemalloc; do
        check "$mode: $sentence" same_as_bare "$script" in_mode "$mode"
        check "$mode, ${EAGER[*]}: $sentence" same_as_bare "$script" in_mode "$mode" "${EAGER[@]}"
    done
}

all_names() {
    local script
    for script in *.sh; do
        case $script in run.sh | common.sh) ;; *) echo "${script%.sh}" ;; esac
    done
}

mapfile -t names < <(all_names)
if [ "${1-}" = --prepare ]; then
    for name in "${names[@]}"; do bash common.sh "$name.sh" prepare; done
    exit
fi
[ $# -gt 0 ] || set -- "${names[@]}"
for name in "$@"; do
    [ -e "$name.sh" ] || { fail "there is a script for $name" "tests/foreign has: ${names[*]}"; continue; }
    check_foreign "$name"
done
finish
