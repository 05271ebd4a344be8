# shellcheck shell=bash
# flarena trim, stats, top --once and who on live processes. Sourced by run.sh.

rss_mb() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$PID/status"; }

listens() { flarena stats "$PID" >/dev/null 2>&1; }

with_holder() { # MODE KIND MEGABYTES CHECK...: starts a process with a control channel, then runs the check
    local mode=$1 kind=$2 size=$3 status=0
    shift 3
    start in_mode "$mode" FLARENA_PRESSURE=off FLARENA_DECAY_MS=3600000 \
        MALLOC_CONF=dirty_decay_ms:3600000,muzzy_decay_ms:3600000 "$SCRATCH/holder" "$kind" "$size" || return
    eventually listens || { echo "no control channel"; status=1; }
    [ "$status" -ne 0 ] || "$@" || status=$?
    stop
    return $status
}

stats_satisfy() { # EXPRESSION over the JSON object `s`
    flarena stats --json "$PID" | python3 -c "
import json, sys
s = json.load(sys.stdin)
assert eval(sys.argv[1]), s" "$1"
}
page_has_sections() {
    flarena stats "$PID" >"$SCRATCH/page"
    cat "$SCRATCH/page"
    grep -q 'in use by the program' "$SCRATCH/page" && ! grep -q '^Recycler$' "$SCRATCH/page"
    flarena stats --all "$PID" >"$SCRATCH/page"
    grep -q '^Recycler$' "$SCRATCH/page" && grep -q 'FLARENA_DECAY_MS' "$SCRATCH/page"
}
trim_prints_result() {
    flarena trim "$PID" | grep -E "^$PID: ([0-9.]+ [KMG]?B returned|nothing to return)$"
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
    check "$mode: stats prints a page, and --all the internals" with_holder "$mode" live 80 page_has_sections
    check "$mode: trim prints the returned size" with_holder "$mode" free 100 trim_prints_result
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
all_is_short() {
    flarena stats "$PID" --all >"$SCRATCH/all"
    cat "$SCRATCH/all"
    grep -qE '^  fallbacks +none$' "$SCRATCH/all" && ! grep -E '.{81}' "$SCRATCH/all"
}
check "stats --all fits in 80 columns, and lists only fallbacks that happened" with_holder glibc live 80 all_is_short
once_json() {
    flarena top --json --sort live | python3 -c "
import json, sys
rows = json.load(sys.stdin)
assert [r for r in rows if r['pid'] == int(sys.argv[1]) and r['live_bytes'] > 0], rows
live = [r['live_bytes'] or 0 for r in rows]
assert live == sorted(live, reverse=True), live" "$PID"
}
check "top --json lists the process in the sort order" with_holder glibc live 80 eventually once_json
once_filtered() { ! flarena top --once --filter no-such-row | grep -w "$PID"; }
holds_a_block='
import flarena, sys
held = b"x" * (80 << 20)
flarena.trim()
print("ready", flush=True)
sys.stdin.read()'
are_named() { # NAME: a line of stats and one of top
    { flarena stats "$PID" && flarena top --json --filter "$PID" && flarena top --once; } >"$SCRATCH/named"
    grep -E "^ *$PID " "$SCRATCH/named"
    [ "$(grep -cE "^ *$PID .*\\b$1\\b" "$SCRATCH/named")" -eq 2 ]
}
names_it() { # NAME WORD...: top and stats show python3 WORD... as NAME, and no other word
    local name=$1 status=0
    shift
    start in_mode glibc PYTHONPATH="$ROOT/src/python" python3 "$@" || return
    eventually listens && eventually are_named "$name" || status=1
    if grep hush "$SCRATCH/named"; then status=1; fi
    stop
    return $status
}
names_scripts() {
    printf '%s\n' "$holds_a_block" >"$SCRATCH/train_a.py"
    cd "$SCRATCH" || return
    touch hush.txt
    names_it train_a.py -W ignore train_a.py --token hush hush.txt &&
        names_it train_a.py "$SCRATCH/train_a.py" hush &&
        names_it train_a -m train_a hush
}
check "top and stats name the script or module of a Python program, and no argument" names_scripts
names_no_code() {
    cd "$SCRATCH" || return
    touch hush.txt
    names_it python3 -c "$holds_a_block # hush" hush.txt
}
check "top and stats show python3 -c as python3, without the code" names_no_code
check "top --filter leaves other processes out" with_holder glibc live 80 once_filtered

another_user() { # COMMAND...: runs it as the user with number 65534
    setpriv --reuid=65534 --regid=65534 --clear-groups "$OPEN_FLARENA" "$@"
}
refuses_another_user() {
    says "refuses this user" another_user stats "$PID" && exits_with 3 another_user trim "$PID"
}
check_as_nobody "another user gets neither statistics nor a trim" with_holder glibc live 80 refuses_another_user

is_listed() { # [OPTION]: in the output of top
    flarena top --once "$@" | awk '{ print $1 }' | grep -x "$PID"
}

small_process_has_no_channel() {
    start in_mode glibc "$SCRATCH/holder" live 1
    local status=0
    says "no control channel yet" flarena stats "$PID" && exits_with 3 flarena trim "$PID" || status=$?
    says "hidden: " flarena top --once && ! flarena top --once --all | grep '^hidden: ' || status=1
    is_listed --all || status=1
    stop
    return $status
}
check "a small process is reported without a control channel, and hidden in top" small_process_has_no_channel
late_channel_is_awaited() { # on a busy machine the channel may open later than the command waits
    local status
    for _ in 1 2 3; do
        start in_mode glibc "$SCRATCH/holder" late 80
        status=0
        says "flarena run --sites" flarena who "$PID" || status=1
        stop
        [ $status -ne 0 ] || return 0
    done
    return 1
}
check "who waits for a control channel that opens late" late_channel_is_awaited
sleeper_is_not_called_small() {
    start in_mode glibc "$SCRATCH/holder" once 200
    local status=0
    says "it holds 20" flarena stats "$PID" || status=1
    ! flarena stats "$PID" 2>&1 | grep small || status=1
    flarena top --once | grep -E '^hidden: [1-9][0-9]* without a control channel' || status=1
    stop
    return $status
}
check "a large process without a control channel is not called small" sleeper_is_not_called_small
process_without_library_is_reported() {
    start without_preload "$SCRATCH/holder" live 1
    local status=0
    says "runs without flarena" flarena stats "$PID" || status=$?
    stop
    return $status
}
check "a process without the library is reported" process_without_library_is_reported
several_at_once() {
    exits_with 3 flarena trim "$PID" 2147483647 && says "$PID: " flarena trim "$PID" 2147483647
}
check "trim with one missing PID trims the other process, and exits with 3" with_holder glibc free 80 several_at_once

#----- in a container: own network, pids and /proc
in_container() { unshare --net --pid --fork --mount-proc "$@"; }
if in_container true 2>/dev/null; then
    from_outside() { stats_satisfy "s['live_bytes'] > 0 and s['pid'] == 1"; }
    holder_in_container() {
        start in_container env LD_PRELOAD="$LIB" "$SCRATCH/holder" live 80 || return
        local status=0
        eventually listens && from_outside && eventually once_has || status=$?
        stop
        return $status
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
        start in_time_namespace env LD_PRELOAD="$LIB" FLARENA_ALLOCATOR="$1" "$SCRATCH/holder" live 80 || return
        local status=0
        eventually listens && stats_satisfy "s['live_bytes'] > 0" && eventually is_listed || status=$?
        stop
        return $status
    }
    for mode in glibc jemalloc; do
        check "$mode: a process in a time namespace answers, and top lists it" listed_with_other_clock $mode
    done
else
    skip "a process in a time namespace answers, and top lists it" "this machine permits no time namespaces"
fi
