#!/usr/bin/env bash
# `flarena report` as a user runs it: files, markers that the library wrote, and a browser.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

export HERE=$ROOT/tests/report TZ=UTC
export flarena=$ROOT/target/release/flarena
[ -x "$flarena" ] || (cd "$ROOT" && cargo build --release --quiet -p flarena-cli) || exit 1
cd "$SCRATCH" || exit 1

python3 "$ROOT/tests/report/markers.py" --sites 4 --rounds 60 >job.jsonl && python3 "$HERE/made.py" || exit 1

flarena() { without_preload "$flarena" "$@"; }

json() { # ARGUMENT... EXPRESSION: prints the value; `r` is the JSON of the report, `p` its first process
    flarena report --json "${@:1:$#-1}" | python3 -c 'import json, sys
r = json.load(sys.stdin)
p = r.get("processes", [None])[0]
print(eval(sys.argv[1]))' "${@: -1}"
}

verdicts() { # FILE...: prints "site verdict" for each process
    json "$@" '"\n".join(sorted(p["site"] + " " + p["verdict"] for p in r["processes"]))'
}

page() { # FILE PATTERN: prints the matches in the page of this file, which is page.html
    flarena report --html page.html "$1" >/dev/null && grep -oE "$2" page.html
}

marks() { # MODE leak|steady: a program in this mode writes MODE-leak.jsonl
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$PWD/$1-$2.jsonl" python3 "$HERE/rounds.py" "$2" 2>/dev/null
}
export -f clean_environment in_mode without_preload flarena json verdicts page marks

while IFS= read -r sentence; do
    check "$sentence" python3 "$ROOT/tests/snapshots.py" "$HERE/cases.txt" "$sentence"
done < <(sed -n 's/^## //p' "$HERE/cases.txt")

in_namespace() { # a process of another pid namespace
    unshare --pid --fork --mount-proc sleep 60 &
    local outer=$!
    local inner='' start
    until [ -n "$inner" ]; do
        sleep 0.05
        inner=$(tr -d ' ' </proc/$outer/task/$outer/children)
    done
    start=$(sed 's/.*) //' "/proc/$inner/stat" | cut -d ' ' -f 20)
    local status=0
    python3 "$HERE/made.py" # "here" wrote five seconds ago
    sed "s/\"pid\": 4000000, \"start\": 1,/\"pid\": 1, \"start\": $start,/" here.jsonl >near.jsonl
    ! cmp -s here.jsonl near.jsonl || status=1
    ! flarena report near.jsonl | grep -i kill || status=1
    kill -9 "$inner"
    wait $outer || true
    return $status
}
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    check "a process near its limit that runs in a container of this machine is not called killed" in_namespace
else
    skip "a process near its limit that runs in a container of this machine is not called killed" "no pid namespace"
fi

make_groups() { # sets GROUP to a control group with a limit of 256 MB and the groups a and b below it
    make_group 256 || return
    [ ! -e "$GROUP/cgroup.subtree_control" ] || echo +memory >"$GROUP/cgroup.subtree_control" || return
    # Where there is swap, the kernel would use it instead of killing.
    echo 0 >"$GROUP/memory.swap.max" || echo 0 >"$GROUP/memory.swappiness" || true
    mkdir "$GROUP/a" "$GROUP/b"
}

remove_groups() { # fails while a process in them has not ended completely
    local group
    for group in "$GROUP/a" "$GROUP/b" "$GROUP"; do
        [ ! -d "$group" ] || rmdir "$group"
    done
}

# Holds 64 MB in group a until its input ends, or grows in group b.
MEMBER='if True:
    import ctypes, sys
    mark = lambda round: ctypes.CDLL(None).flarena_mark(b"send", b"site-1", ctypes.c_long(round))
    held = [b"x" * (64 << 20)]
    for round in range(100 if sys.argv[1] == "b" else 1):
        mark(round)
        held.append(b"x" * (8 << 20))
    sys.stdin.read()
    mark(1)'
member() { # MODE a|b
    echo "$BASHPID" >"$GROUP/$2/cgroup.procs"
    [ "$2" = a ] || echo 1000 >"/proc/$BASHPID/oom_score_adj"
    in_mode "$1" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$PWD/group.jsonl" \
        "$(python3 -c 'import sys; print(sys.executable)')" -c "$MEMBER" "$2" 2>/dev/null
}

killed_at_shared_limit() { # MODE
    local status=0 survivor
    if ! make_groups 2>/dev/null; then
        remove_groups 2>/dev/null || true
        echo "this user may not create control groups"
        return 77
    fi
    rm -f group.jsonl input
    mkfifo input
    (member "$1" a) <input &
    survivor=$!
    exec 9>input
    eventually grep -q '"stage":"send"' group.jsonl || status=1
    (member "$1" b) </dev/null || status=$?
    # Longer than b was ever silent.
    sleep 1
    exec 9>&-
    wait $survivor || status="$status, and $? of the survivor"
    eventually remove_groups
    echo "status $status"
    [ "$status" = 137 ]
    # A process that is killed while it writes a marker leaves a part of the line.
    flarena report group.jsonl >out 2>err || grep "truncated or not JSON\|several records on one line" err
    grep -F "killed: The kernel most likely killed it for lack of memory" out
    grep -F "1 of them killed" out
    flarena report --json group.jsonl >out 2>err || [ -s err ]
    grep -a '^{.*}$' group.jsonl | grep -v '.{"v":' >whole.jsonl
    python3 -c 'import json
killed, = [p for p in json.load(open("out"))["processes"] if p["killed"]]
last = [r for r in map(json.loads, open("whole.jsonl")) if r["pid"] == killed["pid"]][-1]
assert last["cgroup_limit_bytes"] == 256 << 20, last
assert last["cgroup_bytes"] > last["rss_bytes"] + (48 << 20), last'
}
for mode in glibc jemalloc; do
    check "$mode: a process that the kernel killed at the limit of its parent group is called killed" killed_at_shared_limit $mode
done

narrow() {
    without_preload script -qec "stty cols 80; $flarena report job.jsonl limited.jsonl 2>/dev/null" /dev/null >terminal </dev/null
    grep -F "live growth" terminal
    tr -d '\r' <terminal | awk 'length($0) > 80 { print; bad = 1 } END { exit bad }'
}
if need script; then check "on a terminal of 80 columns no line is longer than 80 columns" narrow; fi

warm_up_label() { # inside the chart it would cover the areas
    flarena report --html many.html warm.jsonl
    python3 - <<'END'
import re

page = open("many.html").read()
tops = re.findall(r'<rect class="warm-up" x="[^"]*" y="([^"]*)"', page)
notes = re.findall(r'<text x="[^"]*" y="([^"]*)">left out', page)
assert notes and tops, "no warm-up"
assert all(0 < float(top) - float(note) < 10 for note in notes for top in tops), (notes, tops)
END
}
check "the label of the rounds that are left out is above their band" warm_up_label

in_browser() {
    need chromium || { echo "no chromium here" && exit 77; }
    flarena report --html report.html job.jsonl
    python3 "$HERE/browser.py" report.html
}
check "clicks sort the table, and the filter hides processes" in_browser

opens() {
    need chromium || { echo "no chromium here" && exit 77; }
    local sites
    for sites in 1 7 40 200; do
        # Few markers and many.
        python3 "$ROOT/tests/report/markers.py" --sites $sites --rounds $((sites == 7 ? 60 : 16)) >$sites.jsonl
        flarena report --html "$sites.html" "$sites.jsonl"
    done
    flarena report --html edge.html edge.jsonl
    without_preload FLARENA_LIB="$LIB" "$flarena" compare --runs 2 --dir compared --html compare.html -- sleep 0.2 >/dev/null
    flarena report --compare 7.jsonl 40.jsonl --html runs.html
    python3 "$HERE/opens.py" 1.html 7.html 40.html 200.html edge.html compare.html runs.html
}
check "pages of 1, 7, 40 and 200 processes and of a comparison have no error, no overflow at 1200 and 390 pixels, and a name for each image" opens

finish
