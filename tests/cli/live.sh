# shellcheck shell=bash
# flarena trim, stats, top --once and who on live processes. Sourced by run.sh.

rss_mb() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$PID/status"; }

listens() { flarena stats "$PID" >/dev/null 2>&1; }

with_holder() { # MODE KIND MEGABYTES CHECK...: starts a process with a control channel, then runs the check
    start in_mode "$1" FLARENA_PRESSURE=off FLARENA_DECAY_MS=3600000 \
        MALLOC_CONF=dirty_decay_ms:3600000,muzzy_decay_ms:3600000 "$SCRATCH/holder" "$2" "$3"
    eventually listens
    "${@:4}"
}

stats_satisfy() { # EXPRESSION over the JSON object `s`
    flarena stats --json "$PID" | python3 -c "
import json, sys
s = json.load(sys.stdin)
assert eval(sys.argv[1]), s" "$1"
}
trim_json() {
    flarena trim --json "$PID" | python3 -c "
import json, sys
answer = json.load(sys.stdin)
assert answer['pid'] == int(sys.argv[1]) and answer['released_bytes'] >= 0 and 'result' in answer, answer" "$PID"
}
for mode in glibc jemalloc; do
    check "$mode: the live bytes in stats are at least those of the program" \
        with_holder "$mode" live 80 stats_satisfy "s['live_bytes'] >= 80 << 20 and s['allocator'] == '$mode'"
    check "$mode: trim --json prints one object" with_holder "$mode" free 100 trim_json
done
frees_memory() {
    local before after
    before=$(rss_mb)
    flarena trim "$PID"
    after=$(rss_mb)
    echo "$before MB before, $after MB after"
    [ "$before" -gt 60 ] && [ "$after" -lt $((before / 2)) ]
}
check "trim halves the resident set of a process with free memory" with_holder jemalloc free 100 frees_memory

# top gives a process two seconds for its answer, and shows it without the answer after that: these checks are repeated.
once_has() { flarena top --once | awk -v pid="$PID" '$1 == pid' | grep holder; }
check "top --once lists the process" with_holder glibc live 80 eventually once_has
once_json() {
    flarena top --json --sort live | python3 -c "
import json, sys
rows = json.load(sys.stdin)
assert [r for r in rows if r['pid'] == int(sys.argv[1]) and r['live_bytes'] > 0], rows
live = [r['live_bytes'] or 0 for r in rows]
assert live == sorted(live, reverse=True), live" "$PID"
}
check "top --json lists the process in the sort order" with_holder glibc live 80 eventually once_json

refuses_another_user() {
    says "refuses this user" as_nobody "$OPEN_FLARENA" stats "$PID"
    exits_with 3 as_nobody "$OPEN_FLARENA" trim "$PID"
}
check_as_nobody "another user gets neither statistics nor a trim" with_holder glibc live 80 refuses_another_user

is_listed() { # [OPTION]: in the output of top
    flarena top --once "$@" | awk '{ print $1 }' | grep -x "$PID"
}

small_process_has_no_channel() {
    start in_mode glibc "$SCRATCH/holder" live 1
    says "no control channel yet" flarena stats "$PID"
    exits_with 3 flarena trim "$PID"
    says "hidden: " flarena top --once
    ! flarena top --once --all | grep '^hidden: ' || return
    is_listed --all
}
check "a small process is reported without a control channel, and hidden in top" small_process_has_no_channel
several_at_once() {
    exits_with 3 flarena trim "$PID" 2147483647 && says "$PID: " flarena trim "$PID" 2147483647
}
check "trim with one missing PID trims the other process, and exits with 3" with_holder glibc free 80 several_at_once

#----- in a container: own network, pids and /proc
in_container() { unshare --net --pid --fork --mount-proc "$@"; }
if in_container true 2>/dev/null; then
    holder_in_container() {
        start in_container env LD_PRELOAD="$LIB" "$SCRATCH/holder" live 80
        eventually listens
        stats_satisfy "s['live_bytes'] > 0 and s['pid'] == 1"
        eventually once_has
    }
    check "the host gets the statistics of a process in a container" holder_in_container
    # shellcheck disable=SC2016  # the inner shell expands
    inner='LD_PRELOAD=$LIB "$SCRATCH/holder" live 80 < <(sleep 600) >"$SCRATCH/inner" & pid=$!
for _ in $(seq 300); do "$FLARENA" top --once | grep -q "^ *$pid " && exec "$FLARENA" trim $pid; sleep 0.1; done; exit 1'
    check "in a container the command lists and trims other processes" in_container bash -c "$inner"
else
    skip "the host gets the statistics of a process in a container" "this machine permits no namespaces"
fi

in_time_namespace() { unshare --time --boottime 100000 --fork "$@"; }
if in_time_namespace true 2>/dev/null; then
    listed_with_other_clock() {
        start in_time_namespace env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" "$SCRATCH/holder" live 80
        eventually listens
        stats_satisfy "s['live_bytes'] > 0"
        eventually is_listed
    }
    for mode in glibc jemalloc; do
        check "$mode: a process in a time namespace answers, and top lists it" listed_with_other_clock $mode
    done
else
    skip "a process in a time namespace answers, and top lists it" "this machine permits no time namespaces"
fi
