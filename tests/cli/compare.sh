# shellcheck shell=bash
# flarena compare: the measured figures, failures and interrupts. Sourced by run.sh.
# shellcheck disable=SC2016  # inner shells expand

compares() { # ARGUMENT...: one run of each variant, with files in $SCRATCH/compared
    rm -rf "$SCRATCH/compared"
    flarena compare --runs 1 --dir "$SCRATCH/compared" "$@"
}
measures() { # the peak has the program's 64 MB, and the program's output is in logs only
    # Short sleeps: after a stop of the machine some of them are left, in which the first sample is taken.
    local program='import time
x = bytearray(64 << 20)
for _ in range(25): time.sleep(0.02)
print("output of a run")'
    compares --json --html "$SCRATCH/compared.html" -- python3 -c "$program" >"$SCRATCH/compared.json" || return
    python3 - "$SCRATCH/compared.json" <<'END'
import json, sys
variants = {v["name"]: v for v in json.load(open(sys.argv[1]))["variants"]}
assert {"plain", "flarena glibc", "flarena jemalloc"} <= set(variants), list(variants)
for name, variant in variants.items():
    run, = variant["runs"]
    assert 0 < run["cpu_s"] < 60 and run["wall_s"] > 0 and run["peak_pss_bytes"] > 0, (name, run)
END
    ! grep "output of a run" "$SCRATCH/compared.json" || return
    grep -qx "output of a run" "$SCRATCH/compared/plain-1.log" || return
    grep -q "</svg>" "$SCRATCH/compared/memory.svg" && grep -q "flarena jemalloc" "$SCRATCH/compared.html"
}
check "compare measures each variant, and keeps the output of the command in logs" measures
preloads() { # each variant runs with its own library
    compares -- sh -c 'grep -oE "/lib(flarena|jemalloc)[.]so" /proc/self/maps | sort -u' >/dev/null 2>&1
    [ ! -s "$SCRATCH/compared/plain-1.log" ] &&
        grep -qx "/libflarena.so" "$SCRATCH/compared/flarena-glibc-1.log" &&
        grep -qx "/libflarena.so" "$SCRATCH/compared/flarena-jemalloc-1.log"
}
check "compare runs plain without a library, and both modes on flarena" preloads
fails_in_one() { # only the modes of flarena set FLARENA_ALLOCATOR
    exits_with 1 compares -- sh -c '[ "$FLARENA_ALLOCATOR" != glibc ] || exit 3'
    has_lines "flarena glibc run 1: the command failed, exit status 3; its output is in $SCRATCH/compared/flarena-glibc-1.log" \
        "^flarena jemalloc "
}
check "compare names the variant in which the command fails, its status and its log" fails_in_one
interrupted() { # SIGTERM ends the whole tree, also a process in a session of its own
    local seconds=9$BASHPID # no other process sleeps so long
    rm -rf "$SCRATCH/compared"
    flarena compare --runs 1 --dir "$SCRATCH/compared" -- \
        sh -c '[ -z "$FLARENA_ALLOCATOR" ] || { setsid sleep "$0" & sleep "$0"; }' "$seconds" >"$SCRATCH/table" 2>"$SCRATCH/notes" &
    local started=$! status=0 compare
    eventually pgrep -f "^sleep $seconds" || return
    compare=$(pgrep -f "^$FLARENA compare .*$SCRATCH/" | head -n 1)
    kill -TERM "$compare"
    wait "$started" || status=$?
    cat "$SCRATCH/table" "$SCRATCH/notes"
    [ "$status" -eq 143 ] && ! pgrep -f "^sleep $seconds" && grep -q "^plain  " "$SCRATCH/table" &&
        grep -q "interrupted; this run is not counted" "$SCRATCH/notes"
}
check "an interrupted compare ends all processes of the command and shows the finished runs" interrupted
imports_flarena() { # also where the library is not loaded
    compares -- python3 -c 'import flarena; print(flarena.loaded())' >"$SCRATCH/table" 2>&1 || { cat "$SCRATCH/table"; return 1; }
    grep -qx False "$SCRATCH/compared/plain-1.log" && grep -qx True "$SCRATCH/compared/flarena-glibc-1.log"
}
check "a script that imports flarena runs in each variant of compare" imports_flarena
shows_the_end() {
    exits_with 1 compares -- python3 -c 'print("early\n" * 9, flush=True); raise LookupError("no such model")'
    has_lines "^ *LookupError: no such model$"
    [ "$(grep -c early "$SCRATCH/exits_with")" -lt 5 ]
}
check "compare shows the last lines that a command which fails has printed" shows_the_end
fails_in_json() {
    exits_with 1 compares --json -- false
    { compares --json -- false 2>/dev/null || true; } | python3 -c 'import json, sys; print(json.load(sys.stdin)["variants"][0]["failure"]["status"])'
}
check_output "the JSON of compare names the failure also if no run succeeded" "exit status 1" fails_in_json
later_start_fails() { # the command removes itself in the second variant: what was measured is shown
    printf '%s\n' '#!/bin/sh' '[ ! -e "$0.once" ] || rm "$0"' 'touch "$0.once"' >"$SCRATCH/vanishes"
    chmod +x "$SCRATCH/vanishes"
    exits_with 1 compares -- "$SCRATCH/vanishes"
    has_lines "run 1: cannot start $SCRATCH/vanishes: " "^plain  " "failed: not started"
}
check "compare shows what it has measured if a later variant cannot be started" later_start_fails
cannot_start() { # a missing command, a missing file, a folder, and a file that is not executable
    local command
    touch "$SCRATCH/no-program"
    printf '#!/no/such\n' >"$SCRATCH/no-interpreter" && chmod +x "$SCRATCH/no-interpreter"
    for command in no-such-command-here /no/such "$SCRATCH" "$SCRATCH/no-program" "$SCRATCH/no-interpreter"; do
        exits_with 3 compares -- "$command"
        has_lines "cannot start $command: "
        [ ! -e "$SCRATCH/compared" ]
    done
}
check "compare of a command that cannot be started, or whose interpreter is missing, exits with 3 and leaves no folder" cannot_start
table_at_80() {
    in_terminal 80 env FLARENA_LIB="$LIB" "$FLARENA" compare --runs 2 --dir "$SCRATCH/compared" -- true >"$SCRATCH/table"
    cat "$SCRATCH/table"
    grep -q "^flarena glibc against plain: " "$SCRATCH/table" && ! tr '\r' '\n' <"$SCRATCH/table" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' | grep -E '.{81}'
}
check "at 80 columns the table, sentences and chart of compare fit" table_at_80
quickstart_shows() { # the last part of quickstart.sh, on saved results
    mkdir -p "$SCRATCH/quickstart"
    flarena compare --runs 2 --dir "$SCRATCH/compared" -- sh -c : >"$SCRATCH/quickstart/compare.txt" 2>/dev/null
    printf 'VERDICT PROCESS\nlive growth leak.py\n\nSTAGE PEAK\n' >"$SCRATCH/quickstart/leak.txt"
    "$ROOT/scripts/quickstart/show.sh" "$SCRATCH/quickstart" | tr '\n' ' ' >"$SCRATCH/shown"
    cat "$SCRATCH/shown"
    grep -q 'flarena glibc against plain: .*flarena jemalloc against plain: .*Below plain: half the range of its runs' "$SCRATCH/shown"
    grep -q 'Below the others: the change against plain, and its 95 % interval' "$SCRATCH/shown" && grep -q 'live growth leak.py' "$SCRATCH/shown"
}
check "the quickstart shows the whole comparison: what flarena changes, and how to read the table" quickstart_shows
