#!/usr/bin/env bash
# Other people's suites and programs under the library: the same outcome as without it, in four modes, which are both
# allocators, each also with everything in the recycler's hands that it may have and next to nothing kept.
#
#   tests/foreign/run.sh                    a short selection of each (FOREIGN=short)
#   FOREIGN=whole tests/foreign/run.sh      all of each: hours
#   tests/foreign/run.sh git redis          only these
#
# A script each: its second line is what it states. `SCRIPT prepare` gets what it needs, without the library, and
# exits 77 with the reason where that cannot be had. `SCRIPT short` and `SCRIPT whole` run in an empty directory,
# under the library with every child, and print the outcome: what is the same each time.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/foreign" || exit 1
FOREIGN=${FOREIGN:-short}
EAGER=(FLARENA_RECYCLE_MIN=64K FLARENA_DECAY_MS=1)
export COMMAND_TIMEOUT=600 WORK=$SCRATCH/work
[ "$FOREIGN" = short ] || COMMAND_TIMEOUT=7200

# Some of the programs refuse to be root's: their user must reach all that is used here.
mkdir "$SCRATCH/library"
cp "$LIB" "$SCRATCH/library/libflarena.so"
LIB=$SCRATCH/library/libflarena.so
chmod 755 "$SCRATCH" "$SCRATCH/library"

outcome() { # RUNNER... -- SCRIPT MODE: what the script prints, and its exit status
    local BEFORE AFTER
    split_at_dashes "$@"
    rm -rf "$WORK"
    mkdir "$WORK"
    "${BEFORE[@]}" WORK="$WORK" FOREIGN_LIB="$LIB" bash "${AFTER[@]}" 2>"$SCRATCH/stderr"
    echo "exit status $?"
}

same_as_bare() { # SCRIPT RUNNER...
    local script=$1
    shift
    outcome "$@" -- "$script" "$FOREIGN" >"$SCRATCH/preloaded"
    diff "$SCRATCH/bare" "$SCRATCH/preloaded" || {
        tail -n 30 "$SCRATCH/stderr"
        return 1
    }
}

bare_works() { # SCRIPT
    outcome without_preload FOREIGN_BARE=1 -- "$1" "$FOREIGN" >"$SCRATCH/bare"
    grep -qx 'exit status 0' "$SCRATCH/bare"
}

# A baseline that breaks takes four modes with it. Who asked for all of it is told that it was not had.
broken_baseline() { # NAME SENTENCE
    local seen
    seen="it fails here without the library, twice: $(tail -n 2 "$SCRATCH/bare" | xargs)"
    if [ "$FOREIGN" = short ]; then
        skip "$2" "$seen"
    else
        fail "$2" "$seen"$'\n'"$(tail -n 30 "$SCRATCH/stderr")"
    fi
}

check_foreign() { # NAME
    local script=$1.sh sentence why status
    sentence=$(sed -n '2s/^# //p' "$script")
    why=$(without_preload WORK="$WORK" bash "$script" prepare 2>&1)
    status=$?
    case $status in
        0) ;;
        77) skip "$sentence" "$(tail -n 1 <<<"$why")"; return ;;
        *) fail "$sentence: what it needs is there" "$why"; return ;;
    esac
    # Once more: a busy machine is no reason.
    bare_works "$script" || bare_works "$script" || { broken_baseline "$1" "$sentence"; return; }
    for mode in glibc jemalloc; do
        check "$mode: $sentence" same_as_bare "$script" in_mode "$mode"
        check "$mode, ${EAGER[*]}: $sentence" same_as_bare "$script" in_mode "$mode" "${EAGER[@]}"
    done
}

if [ $# -eq 0 ]; then
    mapfile -t names < <(for script in *.sh; do case $script in run.sh | common.sh) ;; *) echo "${script%.sh}" ;; esac done)
    set -- "${names[@]}"
fi
for name in "$@"; do
    [ -e "$name.sh" ] || { fail "there is a script $name" "tests/foreign has: $(echo ./*.sh)"; continue; }
    check_foreign "$name"
done
finish
