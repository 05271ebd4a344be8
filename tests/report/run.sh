#!/usr/bin/env bash
# `flarena report` as a user runs it: files, markers that the library wrote, and a browser.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

here=$ROOT/tests/report
flarena=$ROOT/target/release/flarena
[ -x "$flarena" ] || (cd "$ROOT" && cargo build --release --quiet -p flarena-cli) || exit 1
cd "$SCRATCH" || exit 1

python3 "$ROOT/scripts/bench/markers.py" --sites 4 --rounds 60 >job.jsonl || exit 1

report() { # EXPECTED_STATUS ARGUMENTS...: stdout to `out`, stderr to `err`
    local expected=$1 status=0
    shift
    without_preload "$flarena" report "$@" >out 2>err || status=$?
    [ "$status" -eq "$expected" ] || {
        printf 'exit status %s instead of %s: flarena report %s\n' "$status" "$expected" "$*"
        cat err out
        return 1
    }
}

contains() { # FILE TEXT
    grep -qF -- "$2" "$1" || {
        printf 'not in %s: %s\n' "$1" "$2"
        cat "$1"
        return 1
    }
}

verdicts() { # FILE...: prints "site verdict" for each process
    report 0 --json "$@"
    python3 -c 'import json
for p in json.load(open("out"))["processes"]: print(p["site"], p["verdict"])' | sort
}

every_verdict() {
    verdicts job.jsonl >found
    printf '%s\n' "site-1 flat" "site-2 live growth" "site-3 retention" "site-4 file-backed" | diff - found
}
check "a flat site, a leak, retention and mapped files get their verdicts" every_verdict

logs_give_the_same_verdicts() {
    verdicts job.jsonl >whole
    python3 "$here/as_logs.py" job.jsonl send >log.txt
    verdicts log.txt | diff whole -
}
check "[RSS] and [MEM] lines of a log give the verdicts of the marker file" logs_give_the_same_verdicts

table() {
    report 0 job.jsonl
    contains out "STAGE"
    contains out "after_trim"
    contains out "retention: RSS grows by "
    contains out "99 % of the growth is live memory"
    contains out "4 processes: 1 live growth, 1 retention, 1 file-backed, 1 flat"
    [ ! -s err ]
}
check "the report prints verdict, evidence and a table of stages, and nothing on stderr" table

request() {
    grep '"site-1"' job.jsonl >one.jsonl
    report 0 one.jsonl
    tail -n 1 out | grep -qE '^memory to request: site-1 [0-9.]+ MB$' || { tail -n 2 out; return 1; }
    report 0 --request one.jsonl
    grep -qxE '\{"site-1":\{"memory":"[1-9][0-9]*Mi"\}\}' out || { cat out; return 1; }
    local memory
    memory=$(grep -oE '[0-9]+Mi' out)
    report 0 --request=slurm one.jsonl
    contains out "--mem=${memory%Mi}M  # site-1"
    report 0 --request=kubernetes one.jsonl
    contains out "\"limits\":{\"memory\":\"$memory\"}"
    report 0 --json one.jsonl
    contains out "\"memory_to_request\":[{\"bytes\":$((${memory%Mi} << 20)).0"
    report 0 --request job.jsonl && cp out without
    report 0 --request --rounds 500 job.jsonl && ! cmp -s out without
}
check "the report prints the memory to request, in the forms of NVFlare, Kubernetes and Slurm" request

many_files() {
    grep '"site-1"' job.jsonl | gzip >site-1.gz
    grep -v '"site-1"' job.jsonl >others.jsonl
    verdicts job.jsonl >whole
    verdicts site-1.gz others.jsonl | diff whole -
    gunzip -c site-1.gz | report 0 -
}
check "plain and gzip files are merged, and standard input is read" many_files

nvflare_log() {
    for round in $(seq 0 19); do
        printf '2026-11-20 06:%02d:00,123 - worker - INFO - round %d\n' "$round" "$round"
        printf '2026-11-20 06:%02d:01,123 - mem_utils - INFO - [RSS] CA s=site-1 r=%d send: %d.8 MB\n' \
            "$round" "$round" $((400 + 10 * round))
    done >log.txt
    report 0 log.txt
    contains out "growth: RSS grows by 10.0 MB/round (95 % interval: "
    contains out "flarena run --profile"
}
check "NVFlare's lines in a log are read, and growth with RSS alone has the verdict growth" nvflare_log

damage() {
    sed -e '7s/"rss_bytes".*/"rss/' -e '9s/^/{"v":1,"t":17636198/' job.jsonl >bad.jsonl
    report 3 bad.jsonl
    contains err "bad.jsonl:7: a record that is truncated or not JSON"
    contains err "bad.jsonl:9: several records on one line: 1 read, the others are lost"
    contains out "4 processes"
}
check "a damaged line is reported with file and line, the others are read, and the status is 3" damage

unreadable() {
    : >empty.log
    mkdir -p folder
    printf 'just\ntext\n' >no-markers.log
    report 3 empty.log folder no-markers.log missing.log "site-*/log.txt" /proc/self/mem job.jsonl
    contains err "2 files hold no marker"
    contains err "folder: has no log and no marker file"
    contains err "missing.log: No such file or directory"
    contains err "site-*/log.txt: no file matches"
    contains err "/proc/self/mem: Input/output error"
    contains out "4 processes"
}
check "files without markers, missing and unreadable files and empty folders are reported, and the others are read" unreadable

without_markers() {
    report 0 empty.log no-markers.log job.jsonl
    printf 'flarena: 2 files hold no marker\n' | diff - err
    report 3 empty.log
    contains err "empty.log: holds no marker; read are JSON lines of FLARENA_MARKER_FILE and "
    [ "$(wc -l <err)" -eq 1 ]
}
check "logs without markers give one line and status 0, and status 3 if no file has a marker" without_markers

fail_on() {
    report 1 --fail-on growth:0.2MB/round job.jsonl
    contains err "site-2 CJ, pid 1001: grows by"
    report 0 --fail-on growth:50MB/round --fail-on peak:8GB job.jsonl
    report 1 --fail-on verdict:retention job.jsonl
    report 2 --fail-on growth:fast job.jsonl
    contains err "growth:SIZE/round"
}
check "--fail-on gives status 1 when a condition is met, and 2 when it is invalid" fail_on

small_rise() { # 0.28 MB per round, of 220 MB
    python3 - >small.jsonl <<'END'
for i in range(20):
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":null,"round":%d,"stage":"send","rss_bytes":%d,"seq":%d}'
          % (60 * i, i, int((220 + 0.28 * i) * (1 << 20)), i))
END
    report 1 --fail-on growth:0.05MB/round small.jsonl
    contains out "flat: RSS (median 222.7 MB) rises by 0.28 MB/round (95 % interval: 0.28 to 0.28 MB) over 20 rounds at stage send. That is too little to matter"
    contains err "grows by 0.28 MB/round (95 % interval: 0.28 to 0.28 MB): the whole interval is above 51 KB"
    report 0 --fail-on growth:0.29MB/round small.jsonl
}
check "--fail-on growth uses the printed interval, even if the verdict is flat" small_rise

stored_job() { # a job of NVFlare's job store, and a model, which is a zip file, too
    mkdir -p store/job
    printf 'PK\003\004' | tee store/job/workspace >store/job/model.npz
    cp job.jsonl store/
    report 0 store
    printf 'flarena: store/job/workspace: is a zip file, whose logs are not read; unpack it, and name its folder\n' | diff - err
}
check "the zip file of a stored job is named, and a model is not" stored_job

prediction() { # 10 MB a round of 60 s, and 150 MB more inside each round; markers name no limit
    python3 - >peaks.jsonl <<'END'
for i in range(30):
    rss = (500 + 10 * i) << 20
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":null,"round":%d,"stage":"send","rss_bytes":%d,"hwm_bytes":%d,"seq":%d}'
          % (60 * i + (36000 if i > 9 else 0), i, rss, rss + (150 << 20), i))
END
    report 0 peaks.jsonl
    grep 'the limit' out && return 1
    report 0 --limit 1G peaks.jsonl
    contains out "without a pause of 10.0 h"
    contains out "reaches the limit of 1024.0 MB in about 8 min"
    report 1 --limit 1G --fail-on limit:1h peaks.jsonl
    report 2 --limit soon peaks.jsonl
}
check "--limit gives the time until it is reached by the peaks inside rounds, and one pause of 10 h does not delay it" prediction

imported() { # an import of 36 s, then 92 s without a change
    python3 - >import.jsonl <<'END'
rows = [(0, "load", 5)] + [(5 + 3 * n, "periodic", 120 + 20 * n) for n in range(10)] + [(97, "periodic", 300), (128, "exit", 297)]
for seq, (t, stage, mb) in enumerate(rows):
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"-","program":"job.py","site":null,"stage":"%s","rss_bytes":%d,"seq":%d}'
          % (t, stage, mb << 20, seq))
END
    report 0 import.jsonl
    contains out "flat: RSS rose by 180.0 MB in the first 9 markers at stage periodic. Since then RSS stays at 300.0 MB"
}
check "an import that is followed by a longer level stretch is flat" imported

cached_pages() { # 8 MB of cached pages come and go
    python3 - >cached.jsonl <<'END'
for i in range(16):
    cached = 8 if i in (1, 2, 3, 4, 8, 9, 10, 13) else 0
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":null,"round":%d,"stage":"send","rss_bytes":%d,"anon_bytes":%d,'
          '"live_bytes":4194304,"retained_bytes":600000,"recycled_bytes":%d,"seq":%d}'
          % (60 * i, i, (28 + cached) << 20, (14 + cached) << 20, cached << 20, i))
END
    report 0 cached.jsonl
    contains out "flat: RSS without cached pages stays at 28.0 MB"
    contains out "Cached pages alternate between 0 and 8.00 MB; they are returned at need."
    ! grep step out
}
check "cached pages that come and go are named as such, and are no step" cached_pages

limit() { # 1 GB below the limit, growing by 10 MB per minute
    python3 - >limited.jsonl <<'END'
for i in range(40):
    rss = (500 + 10 * i) << 20
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"-","program":"train","site":null,"round":%d,"stage":"send",'
          '"rss_bytes":%d,"cgroup_bytes":%d,"cgroup_reclaimable_bytes":%d,"cgroup_limit_bytes":%d,"seq":%d}'
          % (60 * i, i, rss, rss + (300 << 20), 300 << 20, (890 + 1024) << 20, i))
END
    report 0 limited.jsonl
    contains out "train, pid 7"
    contains out "At this rate the process reaches its limit of 1914.0 MB in about 102 min"
    report 1 --fail-on limit:24h limited.jsonl
    contains err "train, pid 7: reaches its limit of 1914.0 MB in about 102 min, less than 24.0 h"
    report 0 --fail-on limit:1h limited.jsonl
    report 0 --json limited.jsonl
    python3 -c 'import json
p = json.load(open("out"))["processes"][0]
assert p["program"] == "train" and p["limit_reached"]["low_95"] < p["limit_reached"]["seconds"] < 1.1 * 6144, p
assert p["growth"] == p["stages"][0]["growth"], p'
}
check "a growing process has a time to its limit, and --fail-on limit:24h compares it" limit

folder() { # the files of two sites, one of them rotated and compressed, and files of other programs
    mkdir -p tree/site-1/app tree/site-2
    grep '"site-1"' job.jsonl | gzip >tree/site-1/log.txt.1.gz
    grep -v '"site-1"' job.jsonl >tree/site-2/rss
    head -c 4000 /dev/urandom >tree/site-2/model.npz
    echo 'print(1)' >tree/site-1/app/train.py
    verdicts job.jsonl >whole
    verdicts tree | diff whole -
    [ ! -s err ]
}
check "a folder is read with the folders in it: logs, marker files, rotated and compressed ones" folder

compare() {
    python3 - <<'END'
for name, base, growth, cpu in (("before", 2600, 0, 1600), ("after", 1800, 0, 1520), ("leak", 1800, 5, 1520)):
    with open(name + ".jsonl", "w") as out:
        for i in range(40):
            rss = int((base + growth * i + i % 3) * (1 << 20))
            out.write('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":"site-1","round":%d,"stage":"send","rss_bytes":%d,"cpu_ms":%d,"seq":%d}\n'
                      % (60 * i, i, rss, cpu * i, i))
END
    report 0 --compare before.jsonl after.jsonl
    head -n 1 out | diff <(echo "after: peak 31 % lower (1802.0 instead of 2602.0 MB), CPU time 5 % lower (59.3 instead of 62.4 s), no growth in either; site-1 TR changed most: -31 %, ±0 % at stage send") -
    grep -qE '^ *site-1 TR +verdict +flat +flat' out
    grep -qE '^ +send mean +2601.0 MB .*-31 %, ±0 %' out
    grep -qE '^ +CPU time +62.4 s +59.3 s +-5 %' out
    mkdir -p run-2
    cp leak.jsonl run-2/
    report 0 --json --compare after.jsonl run-2
    python3 -c 'import json
found = json.load(open("out"))
assert found["cpu_seconds"] == {"before": 59.28, "after": 59.28}, found
assert found["growing"] == {"before": [], "after": ["site-1 TR, pid 7"]}, found["growing"]
stage = found["sites"][0]["processes"][0]["stages"][0]["sizes"]["after"]
assert stage["growth"]["low_95"] < 5 << 20 < stage["growth"]["high_95"], stage'
    report 0 --compare before.jsonl before.jsonl
    contains out "No difference beyond noise: site-1 TR."
    report 0 --compare before.jsonl leak.jsonl --html compared.html
    contains compared.html "growth only after: site-1 TR, pid 7 by +5.00 MB/round"
    contains compared.html "<th scope=\"row\">site-1 TR</th>"
    contains compared.html "before: peak 2602.0 MB, after: peak 1995.0 MB"
    report 3 --compare before.jsonl missing.jsonl
    contains out "the run after has no marker"
    report 2 --compare before.jsonl
}
check "--compare shows peak, mean, CPU time and growth of two runs, of files or folders, with one sentence" compare

undated() { # two processes without times beside one with times
    python3 - >undated.jsonl <<'END'
for pid in (1, 2, 3):
    for i in range(6):
        t = '"t":%d,' % (60 * i) if pid == 3 else ""
        print('{"v":1,%s"pid":%d,"start":1,"proc":"TR","site":"site-%d","round":%d,"stage":"send","rss_bytes":104857600,"seq":%d}'
              % (t, pid, pid, i, i))
END
    report 0 --html undated.html undated.jsonl
    contains undated.html "Not counted: 2 processes without times."
}
check "the page says how many processes have no times" undated

last_of_many() { # a long series is stored in fewer points
    python3 - >long.jsonl <<'END'
for i in range(10000):
    for seq, stage in enumerate(("receive", "send")):
        print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":"site-1","round":%d,"stage":"%s","rss_bytes":%d,"seq":%d}'
              % (10 * i + seq, i, stage, (300 + seq) << 20, 2 * i + seq))
END
    report 0 --html many.html long.jsonl
    contains many.html "round 9999: RSS 30"
}
check "the last of 10,000 rounds is shown as the last round" last_of_many

killed() { # LIMIT: one stage, then 10 MB/s for 80 s, to 775 MB
    python3 - "$1" >killed.jsonl <<'END'
import sys
for seq, (t, stage, mb) in enumerate([(0, "load", 5), (1, "train", 15)] + [(t, "periodic", 5 + 10 * t) for t in range(2, 80, 3)]):
    print('{"v":1,"t":%d,"pid":4000000,"start":1,"proc":"TR","site":"site-1","round":12,"stage":"%s","rss_bytes":%d,'
          '"cgroup_bytes":%d,"cgroup_reclaimable_bytes":0,"cgroup_limit_bytes":%d,"cgroup_oom_kills":0,"seq":%d}'
          % (t, stage, mb << 20, mb << 20, int(sys.argv[1]) << 20, seq))
END
}
killed_near_limit() {
    killed 800
    report 0 killed.jsonl
    contains out "killed: The kernel most likely killed it for lack of memory, at 775.0 MB, with a limit of 800.0 MB, in stage train of round 12."
    contains out "It grew by 760.0 MB in 76 s inside stage train of round 12, at 600.0 MB/min."
    contains out "last marker 00:01:17, periodic after round 12, train"
    report 0 --html killed.html killed.jsonl
    contains killed.html "killed at 00:01:17: site-1 TR, pid 4000000"
    report 0 --json killed.jsonl
    python3 -c 'import json
p = json.load(open("out"))["processes"][0]
assert p["killed"] == {"stage": "train", "round": 12, "rss_bytes": 775 << 20, "counted_by_kernel": False}, p["killed"]
assert p["kill_candidate"] is None and p["stopped"] is None and p["exited"] is False, p
assert p["last_marker"] == {"t": 77, "stage": "periodic", "round": None, "rss_bytes": 775 << 20}, p["last_marker"]'
    killed 850
    report 0 killed.jsonl
    grep -i kill out && return 1
    killed 800
    sed '$s/"stage":"periodic"/"stage":"exit"/' killed.jsonl >exited.jsonl
    report 0 exited.jsonl
    ! grep -iE 'kill|last marker' out
}
check "growth after a program's only stage is named, and so is its end near the memory limit" killed_near_limit

silent() { # the trainer of site-2 writes nothing after round 3, while the others do eight rounds
    python3 - "$(uname -n)" >silent.jsonl <<'END'
import sys
for site in (1, 2, 3):
    stages = [(0, None, "load")] + [(60 * r + 60, r, "send") for r in range(8)] + [(600, None, "exit")]
    for seq, (t, round, stage) in enumerate(stages if site != 2 else stages[:5]):
        print('{"v":1,"t":%d,"pid":%d,"start":1,"proc":"TR","site":"site-%d","round":%s,"stage":"%s","rss_bytes":%d,"host":"%s","seq":%d}'
              % (1795156366 + t, 4000000 + site, site, "null" if round is None else round, stage, 812 << 20, sys.argv[1], seq))
END
    report 0 silent.jsonl
    contains out "3 processes: 2 flat, 1 not enough rounds"
    contains out "last marker 06:36:46, round 3, send"
    [ "$(grep -c 'last marker' out)" -eq 1 ]
    ! grep -iE 'stopped|kill|went on|->' out
}
check "a process whose markers end without the marker exit is shown with its last marker, and nothing is guessed" silent

one_kill() { # the trainer of site-1 was killed when the count rose; CP wrote its last marker at the same moment
    python3 - >kill.jsonl <<'END'
def marker(pid, proc, t, stage, mb, kills, seq):
    print('{"v":1,"t":%f,"pid":%d,"start":1,"proc":"%s","site":"site-1","round":null,"stage":"%s","rss_bytes":%d,"cgroup_bytes":%d,'
          '"cgroup_reclaimable_bytes":0,"cgroup_limit_bytes":%d,"cgroup_oom_kills":%d,"host":"elsewhere","seq":%d}'
          % (t, pid, proc, stage, mb << 20, 380 << 20, 420 << 20, kills, seq))
for seq, t in enumerate((0, 10, 80, 135)):
    marker(1, "CP", t, "load" if seq == 0 else "periodic", 86, 0, seq)
for seq, t in enumerate(range(40, 136, 5)):
    marker(2, "TR", t, "load" if seq == 0 else "train", 300, 0, seq)
for seq, (t, kills) in enumerate(((30, 0), (134, 0), (136, 1), (144, 1))):
    marker(3, "CJ", t, "load" if seq == 0 else "send", 95, kills, seq)
END
    report 0 --json kill.jsonl
    python3 -c 'import json
killed = [(p["proc"], p["killed"]["counted_by_kernel"]) for p in json.load(open("out"))["processes"] if p["killed"]]
assert killed == [("TR", True)], killed'
}
check "of three processes near one limit only the one that a counted kill may have ended is called killed" one_kill

near_its_limit() { # HOST SECONDS: a program that last wrote so many seconds ago, near its limit
    python3 - "$@" >near.jsonl <<'END'
import sys, time
host, end = sys.argv[1], time.time() - float(sys.argv[2])
for seq, (t, stage, mb) in enumerate([(9, "load", 5)] + [(8 - n, "train", 880 + 10 * n) for n in range(9)]):
    print('{"v":1,"t":%f,"pid":4000000,"start":1,"proc":"TR","site":"site-1","round":%d,"stage":"%s","rss_bytes":%d,'
          '"cgroup_bytes":%d,"cgroup_reclaimable_bytes":0,"cgroup_limit_bytes":%d,"cgroup_oom_kills":0,"host":"%s","seq":%d}'
          % (end - t, seq, stage, mb << 20, mb << 20, 1000 << 20, host, seq))
END
    report 0 near.jsonl
}
may_run_elsewhere() {
    near_its_limit other-host 5
    grep -i kill out && return 1
    near_its_limit other-host 600
    contains out "killed: The kernel most likely killed it"
    near_its_limit "$(uname -n)" 5
    contains out "killed: The kernel most likely killed it"
    ! grep "reaches its limit" out
}
check "a process near its limit is not called killed while it may run on another machine" may_run_elsewhere

in_namespace() { # a process of another pid namespace
    unshare --pid --fork --mount-proc sleep 60 &
    local outer=$!
    local inner='' start
    until [ -n "$inner" ]; do
        sleep 0.05
        inner=$(tr -d ' ' </proc/$outer/task/$outer/children)
    done
    start=$(sed 's/.*) //' "/proc/$inner/stat" | cut -d ' ' -f 20)
    near_its_limit "$(uname -n)" 5
    sed -i "s/\"pid\":4000000,\"start\":1,/\"pid\":1,\"start\":$start,/" near.jsonl
    local status=0
    report 0 near.jsonl
    ! grep -i kill out || status=1
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
    local expected=0
    report 0 group.jsonl || {
        grep "truncated or not JSON\|several records on one line" err
        expected=3
    }
    contains out "killed: The kernel most likely killed it for lack of memory"
    contains out "1 of them killed"
    report $expected --json group.jsonl
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

counted_once() {
    report 0 job.jsonl
    grep -c 'pid' out >before
    for round in $(seq 0 59); do
        rss=$(python3 -c 'import json, sys
for line in open("job.jsonl"):
    r = json.loads(line)
    if (r["site"], r["stage"], r["round"]) == ("site-1", "send", int(sys.argv[1])): print("%.1f" % (r["rss_bytes"] / 2**20))' "$round")
        echo "x - INFO - [RSS] CJ s=site-1 r=$round send: $rss MB"
    done >job.log
    report 0 job.jsonl job.log
    grep -c 'pid' out | diff before -
    contains err "job.log: 60 markers were read twice and are counted once"
}
check "a process in a log and in markers is counted once" counted_once

one_worker() { # two clients of Flower in one process, which the worker that set it up became by an exec
    report 0 --json "$here/flower-worker.jsonl"
    python3 -c 'import json
processes = {p["program"]: p for p in json.load(open("out"))["processes"]}
assert sorted(processes) == ["default_worker.py"], sorted(processes)
worker = processes["default_worker.py"]
assert worker["began_as"] == ["setup_worker.py"] and worker["became"] is None, worker
assert sorted(worker["sites"]) == ["client-0", "client-1"], worker["sites"]
rounds = {s["stage"]: s["rounds"] for s in worker["stages"]}
assert rounds["before_train"] == 3, rounds'
}
check "a worker that serves several clients is one process with all rounds" one_worker

one_a_round() { # 14 trainers, each with a pid of its own
    python3 - >trainers.jsonl <<'END'
for i in range(14):
    for seq, (stage, rss) in enumerate((("receive", 300), ("send", 320 + 10 * i))):
        print('{"v":1,"t":%d,"pid":%d,"start":%d,"proc":"TR","program":"train.py","role":"client","site":"site-1","round":%d,'
              '"stage":"%s","rss_bytes":%d,"hwm_bytes":%d,"seq":%d}'
              % (60 * i + seq, 100 + i, 900 + i, i, stage, rss << 20, (400 + 20 * i) << 20, seq))
END
    report 0 trainers.jsonl
    contains out "site-1 TR, 14 processes, one a round"
    contains out "(peak)"
    contains out "growth: RSS grows by 10.0 MB/round"
    [ "$(grep -c 'processes' out)" -eq 1 ]
}
check "processes that follow each other, one a round, are one row with a verdict on stages and peak" one_a_round

narrow() {
    without_preload script -qec "stty cols 80; $flarena report job.jsonl limited.jsonl 2>/dev/null" /dev/null >terminal </dev/null
    contains terminal "live growth"
    tr -d '\r' <terminal | awk 'length($0) > 80 { print; bad = 1 } END { exit bad }'
}
if need script; then check "on a terminal of 80 columns no line is longer than 80 columns" narrow; fi

prometheus() {
    sed 's/site-1"/a\\"b\\\\c"/' job.jsonl >quoted.jsonl
    report 0 --prometheus flarena.prom quoted.jsonl
    python3 "$here/prometheus.py" flarena.prom
    [ "$(find . -name '*.tmp')" = "" ]
    report 3 --prometheus no/such/dir/x.prom job.jsonl
    contains err "cannot write no/such/dir/x.prom"
}
check "--prometheus writes a valid exposition file and leaves no temporary file" prometheus

closed_pipe() {
    local status=0
    "$flarena" report --all job.jsonl 2>err | head -n 1 >/dev/null || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 141 ]
    [ ! -s err ]
}
check "a closed pipe ends the report without a message" closed_pipe

bounded_memory() {
    python3 "$here/bounded.py" "$flarena"
}
check "memory is bounded for an endless line, and for a different stage or process on every line" bounded_memory

real_markers() {
    need python3
    for mode in glibc jemalloc; do
        rm -f real.jsonl
        in_mode "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$PWD/real.jsonl" \
            python3 "$here/rounds.py" leak 2>/dev/null
        verdicts real.jsonl >found
        contains found "site-1 live growth"
        rm -f real.jsonl
        in_mode "$mode" NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$PWD/real.jsonl" \
            python3 "$here/rounds.py" steady 2>/dev/null
        verdicts real.jsonl >found
        contains found "site-1 flat"
    done
}
check "a program that leaks is live growth and a steady one is flat, in both modes" real_markers

self_contained() {
    report 0 --html report.html job.jsonl
    if grep -oE 'url\(|@import|<(link|img|iframe|object)|(src|href)="[^#"]+' report.html ||
        sed 's,http://www.w3.org/2000/svg,,g' report.html | grep -oE 'https?://'; then
        return 1
    fi
}
check "the page loads nothing" self_contained

hostile_names() {
    sed 's/"site-1"/"<script>alert(1)<\/script>\\u001b[31m"/; s/"send"/"<b>\&amp;"/' job.jsonl >hostile.jsonl
    report 0 --html hostile.html hostile.jsonl
    # Only the script of the page.
    if [ "$(grep -o '<script' hostile.html | wc -l)" -ne 1 ] || grep -q 'alert(1)</script' hostile.html || LC_ALL=C grep -q $'\033' out hostile.html; then
        echo "a name from a file is not escaped"
        return 1
    fi
}
check "names from files are escaped on the page and on the terminal" hostile_names

tooltips() {
    report 0 --html many.html job.jsonl
    grep -qE '<title>round 17: RSS [0-9.]+ MB, live [0-9.]+ MB</title>' many.html
    python3 "$ROOT/scripts/bench/markers.py" --sites 1 --rounds 8 >few.jsonl
    report 0 --html few.html few.jsonl
    grep -qE '<title>round 3: RSS [0-9.]+ MB, live [0-9.]+ MB</title>' few.html
}
check "a tooltip shows round, RSS and live memory" tooltips

warm_up_label() { # at the bottom it would cover the line of file-backed memory
    python3 - >warm.jsonl <<'END'
for i in range(60):
    rss = int((600 - 400 * max(0, 1 - i / 20)) * (1 << 20))
    print('{"v":1,"t":%d,"pid":7,"start":1,"proc":"TR","site":null,"round":%d,"stage":"send","rss_bytes":%d,"file_bytes":1048576,'
          '"seq":%d}' % (60 * i, i, rss, i))
END
    report 0 --html many.html warm.jsonl
    python3 - <<'END'
import re

page = open("many.html").read()
tops = re.findall(r'<rect class="warm-up" x="[^"]*" y="([^"]*)"', page)
notes = re.findall(r'<text x="[^"]*" y="([^"]*)">warm-up', page)
assert notes and tops, "no warm-up"  # a narrow band has no label
assert all(0 < float(note) - float(top) < 20 for note in notes for top in tops), (notes, tops)
END
}
check "the label of the warm-up is at the top of its band" warm_up_label

code_in_remedies() {
    report 0 --html many.html job.jsonl
    sed 's,</p>,\n,g' many.html | sed -n 's/.*What to do://p' >remedies
    grep '<code>export NVFLARE_ENABLE_JEMALLOC_PRELOAD=true</code>' remedies
    ! sed 's,<code>[^<]*</code>,,g' remedies | grep -E '[A-Z]+_[A-Z_]+='
}
check "settings and calls in a remedy are formatted as code" code_in_remedies

in_browser() {
    need chromium || {
        echo "no chromium here"
        exit 77
    }
    python3 "$here/browser.py" report.html
}
check "clicks sort the table, and the filter hides processes" in_browser

opens() {
    need chromium || {
        echo "no chromium here"
        exit 77
    }
    local sites
    for sites in 1 7 40 200; do
        # Few markers and many.
        python3 "$ROOT/scripts/bench/markers.py" --sites $sites --rounds $((sites == 7 ? 60 : 16)) >$sites.jsonl
        report 0 --html "$sites.html" "$sites.jsonl"
    done
    python3 "$here/edge_cases.py" >edge.jsonl
    report 0 --html edge.html edge.jsonl
    without_preload FLARENA_LIB="$LIB" "$flarena" compare --runs 2 --dir compared --html compare.html -- sleep 0.2 >/dev/null
    report 0 --compare 7.jsonl 40.jsonl --html runs.html
    python3 "$here/opens.py" 1.html 7.html 40.html 200.html edge.html compare.html runs.html
}
check "pages of 1, 7, 40 and 200 processes and of a comparison have no error, no overflow at 1200 and 390 pixels, and a name for each image" opens

finish
