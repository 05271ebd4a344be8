#!/usr/bin/env bash
# Markers: text and JSON form, many writers to one file, unusual names, files that cannot be written.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/markers" || exit 1
# shellcheck source=tests/markers/files.sh
. ./files.sh
export COMMAND_TIMEOUT=240

# The programs of the tests begin with it. `await_marker` ends when the last marker satisfies the condition. A second of
# sleep follows each look, so that the program stays idle.
HEAD='
import ctypes, json, mmap, os, signal, subprocess, sys, time, types
library = ctypes.CDLL(None)
def mark(stage, site=None, round=-1):
    library.flarena_mark(stage.encode(), site, round)
def in_fork(work, *arguments):
    if os.fork() == 0:
        os._exit(work(*arguments) or 0)
    assert os.wait()[1] == 0
def stats():
    text = ctypes.create_string_buffer(1 << 16)
    library.flarena_stats_json(text, len(text))
    return json.loads(text.value)
def await_marker(condition):
    for _ in range(120):
        time.sleep(1)
        if condition(json.loads(open(os.environ["FLARENA_MARKER_FILE"]).read().splitlines()[-1])): break
'

PROFILE=NVFLARE_CLIENT_MEMORY_PROFILE=1
MARK=$SCRATCH/marker
# The interpreter itself, because python3 may be a shell script.
PYTHON=$(python3 -c 'import sys; print(sys.executable)')

is_jemalloc() { # MODE
    if [ "$1" = jemalloc ]; then echo true; else echo false; fi
}

validate() {
    python3 validate.py "$@"
}

records_satisfy() { # FILE CODE [ARGUMENT...]: Python with the `records` of the file and the arguments from sys.argv[2] on
    python3 - "$1" "${@:3}" <<END
import json, sys
records = [json.loads(line) for line in open(sys.argv[1])]
$2
END
}

marked() { # MODE [NAME=VALUE...] CODE [ARGUMENT...]: runs the Python code with markers, which are in $WORK/json
    local settings=()
    rm -f "$WORK/json"
    while [[ $2 =~ ^[A-Z_]+= ]]; do
        settings+=("$2")
        set -- "$1" "${@:3}"
    done
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "${settings[@]}" "$PYTHON" -c "$HEAD$2" "${@:3}" 2>"$WORK/err" ||
        { cat "$WORK/err" && return 1; }
}

mark_with_mounts() { # MODE MOUNT-COMMAND: one marker, in a mount namespace that the command has changed. Only the program is preloaded.
    unshare --mount true 2>/dev/null || { echo "this user may not create a mount namespace"; exit 77; }
    without_preload unshare --mount sh -c "$2"' && exec "$@"' sh \
        env LD_PRELOAD="$LIB" NVFLARE_ENABLE_JEMALLOC_PRELOAD="$(is_jemalloc "$1")" $PROFILE FLARENA_MARKER_FILE="$WORK/json" \
        "$MARK" one send site-1 1 >"$WORK/out" 2>"$WORK/err"
}

at_terminal() { # MODE [NAME=VALUE...]: runs a program with markers at a terminal
    in_mode "$@" script -qec "$MARK many 4 5" /dev/null </dev/null | tr -d '\r' >"$WORK/out"
}

off_by_default() { # MODE
    in_mode "$1" FLARENA_MARKER_FILE="$WORK/file" "$MARK" many 4 5 >"$WORK/out" 2>&1
    [ "$(cat "$WORK/out")" = "done" ]
    [ ! -e "$WORK/file" ]
    at_terminal "$1" FLARENA_MARKER_FILE="$WORK/file"
    cat "$WORK/out"
    [ "$(wc -l <"$WORK/out")" -eq 3 ]
    [ "$(grep -c '^flarena: .*--profile' "$WORK/out")" -eq 1 ]
    [ "$(wc -L <"$WORK/out")" -le 80 ]
    [ ! -e "$WORK/file" ]
    at_terminal "$1" FLARENA_LOG=off
    [ "$(wc -l <"$WORK/out")" -eq 1 ]
}

# Each line: STDERR FILE and the expected result of flarena_mark.
mark_results() { # MODE
    local stderr file expected result
    while read -r stderr file expected; do
        result=$(in_mode "$1" $PROFILE FLARENA_LOG=off FLARENA_MARKER_FILE="${file#none}" sh -c "exec $MARK one send site-1 1 $stderr" || true)
        echo "$stderr $file: $result"
        [ "$(wc -l <<<"$result")" -eq 1 ]
        [[ $result == "${expected/-/ }"* ]]
    done <<END
2>/dev/null none done
2>/dev/full none flarena_mark:-No
2>&- none flarena_mark:-Bad
2>/dev/null $WORK/results done
2>/dev/full $WORK/results done
2>&- $WORK/results done
2>/dev/null /nowhere/file flarena_mark:-No
2>/dev/full /dev/full flarena_mark:-No
END
    [ "$(grep -c '"stage":"send"' "$WORK/results")" -eq 3 ]
}

text_form() { # MODE
    in_mode "$1" $PROFILE "$MARK" one send site-1 3 >/dev/null 2>"$WORK/text"
    cat "$WORK/text"
    grep -qE '^\[RSS\] - s=site-1 r=3 send: [0-9]+\.[0-9] MB$' "$WORK/text"
    validate text "$WORK/text" load=1 send=1 exit=1
}

json_form() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" FLARENA_ROLE=server "$MARK" one send site-1 3 2>"$WORK/text" >/dev/null
    cat "$WORK/json"
    validate json "$WORK/json" load=1 send=1 exit=1
    validate text "$WORK/text" load=1 send=1 exit=1
    records_satisfy "$WORK/json" '
_, record, end = records
assert (end["stage"], end["site"], end["round"]) == ("exit", "site-1", 3), end
assert end["live_bytes"] is None and end["retained_bytes"] is None, end
assert None not in (end["rss_bytes"], end["hwm_bytes"], end["recycled_bytes"], end["cpu_ms"]), end
assert (record["stage"], record["site"], record["round"]) == ("send", "site-1", 3), record
assert record["alloc"] == sys.argv[2] and record["role"] == "server", record
parts = record["anon_bytes"] + record["file_bytes"] + record["shmem_bytes"]
assert abs(parts - record["rss_bytes"]) < 4 << 20, record
assert record["hwm_bytes"] >= record["rss_bytes"] and record["hwm_bytes"] > 1 << 20, record
assert 0 < record["live_bytes"] < 64 << 20, record' "$1"
}

monotonic_time() { # MODE
    marked "$1" '
before = time.clock_gettime(time.CLOCK_BOOTTIME)
mark("here")
print(before, time.clock_gettime(time.CLOCK_BOOTTIME))' >"$WORK/times"
    records_satisfy "$WORK/json" '
here = {record["stage"]: record["mono"] for record in records}["here"]
before, after = map(float, open(sys.argv[2]).read().split())
assert before - 1e-6 <= here <= after, (before, here, after)' "$WORK/times"
}

limits() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "$MARK" one free site-1 1 >/dev/null 2>&1
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" FLARENA_MEMORY_LIMIT=3G "$MARK" one limited site-1 1 >/dev/null 2>&1
    validate json "$WORK/json" free=1 limited=1
    records_satisfy "$WORK/json" '
limits = {record["stage"]: record["memory_limit_bytes"] for record in records}
assert (limits["free"], limits["limited"]) == (None, 3 << 30), limits
total = next(line for line in open("/proc/meminfo") if line.startswith("MemTotal:"))
assert records[0]["host_memory_bytes"] == int(total.split()[1]) << 10, records[0]'
}

# A mapping is gone before the marker: VmHWM has risen, or the governor has measured meanwhile.
peaks() { # MODE
    marked "$1" '
def ticks():
    return stats()["governor"]["ticks"]
def hold(megabytes, stage, is_watched):
    block = mmap.mmap(-1, megabytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    library.memset(ctypes.byref(ctypes.c_char.from_buffer(block)), 1, ctypes.c_size_t(len(block)))
    before = ticks()
    for _ in range(600):
        if not is_watched or ticks() >= before + 2: break
        time.sleep(0.1)
    block.close()
    mark(stage)
kept = bytearray(b"x") * (80 << 20)  # so that the governor runs
mark("begin")
hold(300, "risen", False)
mark("after")
hold(100, "watched", True)
mark("end")'
    validate json "$WORK/json" risen=1 watched=1
    records_satisfy "$WORK/json" '
seen = [(record["stage"], record["rss_bytes"] >> 20, record["hwm_bytes"] >> 20, record["peak_bytes"] >> 20) for record in records]
place = {stage: number for number, (stage, *_) in enumerate(seen)}
def growth(before, stage):
    """The highest peak after one marker up to another: the governor may write some between them."""
    return max(peak for *_, peak in seen[place[before] + 1:place[stage] + 1]) - seen[place["begin"]][1]
_, _, hwm, _ = seen[place["risen"]]
assert 290 < growth("begin", "risen") == hwm - seen[place["begin"]][1], seen
assert growth("risen", "after") < 90 < growth("after", "watched") < 290 and growth("watched", "end") < 90, seen'
}

gpu_cache() { # MODE: with a PyTorch that is none
    marked "$1" PYTHONPATH="$ROOT/src/python" PYTHONDONTWRITEBYTECODE=1 '
import flarena
torch, cuda = (sys.modules.setdefault(name, types.ModuleType(name)) for name in ("torch._C", "torch.cuda"))
cuda.is_initialized = lambda: False
torch._cuda_getDeviceCount = lambda: 2
torch._cuda_hasPrimaryContext = lambda device: True
size = lambda bytes: {"all": {"current": bytes}}
torch._cuda_memoryStats = lambda device: {"allocated_bytes": size(3), "reserved_bytes": size(5 + device)}
flarena.mark("not started")
cuda.is_initialized = lambda: True
flarena.mark("started")
mark("by C")
in_fork(lambda: (mark("fork"), flarena.mark("fork that starts CUDA")) and 0)'
    validate json "$WORK/json"
    records_satisfy "$WORK/json" '
sizes = {r["stage"]: (r["gpu_allocated_bytes"], r["gpu_reserved_bytes"]) for r in records}
del sizes["load"], sizes["exit"]
none, both = (None, None), (6, 11)
assert sizes == {"not started": none, "started": both, "by C": both, "fork": none, "fork that starts CUDA": both}, sizes'
}

jobs() { # MODE
    marked "$1" '
child = """
import ctypes
library = ctypes.CDLL(None)
for stage, job in (b"inherited", b""), (b"received", b"ABCDEF01-2fa1-41d2-883f-0016d3cca427"), (b"no id", b"secret-1"), (b"none", None):
    if job != b"": library.flarena_note_job(job)
    library.flarena_mark(stage, None, -1)
"""
mark("job")
subprocess.run([sys.executable, "-c", child])
in_fork(mark, "worker")' -m nvflare.private.fed.app.client.worker_process -n 1b4e28ba-2fa1-41d2-883f-0016d3cca427 -c site-1
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "$PYTHON" -c '
import ctypes
ctypes.CDLL(None).flarena_mark(b"simulated", None, -1)' -m nvflare.private.fed.app.server.runner_process -n secret-2 2>/dev/null
    validate json "$WORK/json"
    cat "$WORK/json"
    ! grep -E 'secret|0016d3cca427' "$WORK/json" || return
    records_satisfy "$WORK/json" '
jobs = {record["stage"]: record["job"] for record in records if record["stage"] not in ("load", "exit")}
assert jobs == {
    "job": "1b4e28ba", "inherited": "1b4e28ba", "received": "ABCDEF01", "no id": "1b4e28ba", "none": "1b4e28ba",
    "worker": "1b4e28ba", "simulated": None,
}, jobs'
}

boot() { # MODE: in two pid namespaces both processes have pid 1, and nearly the same start
    unshare --pid --fork true 2>/dev/null || { echo "this user may not create a pid namespace"; exit 77; }
    marked "$1" FLARENA_SITES=on '
held = b"x" * (4 << 20)
mark("parent")
in_fork(mark, "fork")'
    # The program unshares itself, so that its child has pid 1, too.
    without_preload unshare --pid --fork env LD_PRELOAD="$LIB" NVFLARE_ENABLE_JEMALLOC_PRELOAD="$(is_jemalloc "$1")" \
        $PROFILE FLARENA_MARKER_FILE="$WORK/pods" "$PYTHON" -c "$HEAD"'
mark("pod")
assert library.unshare(0x20000000) == 0
in_fork(mark, "pod")' 2>/dev/null
    records_satisfy "$WORK/json" '
pods = [json.loads(line) for line in open(sys.argv[2])]
assert {"kind", "stage"} <= {key for record in records for key in record}, records
assert len({record["boot"] for record in records}) == 1 and records[0]["boot"], records
processes = {(record["boot"], record["pid"]) for record in pods if record["stage"] == "pod"}
assert {pid for _, pid in processes} == {1} and len(processes) == 2, processes
assert records[0]["boot"] not in {boot for boot, _ in processes}, (records[0], processes)' "$WORK/pods"
    validate json "$WORK/pods" pod=2
}

boot_is_unknown() { # MODE
    mark_with_mounts "$1" 'mount --bind /dev/null /proc/sys/kernel/random/boot_id'
    validate json "$WORK/json" load=1 send=1 exit=1
    [ "$(grep -c '"boot":null' "$WORK/json")" -eq 3 ]
}

cpu_time() { # MODE: work before a marker, and a sleep before another one
    marked "$1" '
def timed(stage):
    before = time.process_time()
    mark(stage)
    print(stage, before, time.process_time())
while time.process_time() < 0.5: pass
timed("worked")
time.sleep(0.5)
timed("slept")' >"$WORK/cpu"
    records_satisfy "$WORK/json" '
ms = {record["stage"]: record["cpu_ms"] for record in records}
for stage, before, after in map(str.split, open(sys.argv[2])):
    assert float(before) * 1000 - 1 <= ms[stage] <= float(after) * 1000, (stage, before, ms[stage], after)' "$WORK/cpu"
}

chosen_settings() { # MODE: names what the user chose
    local chosen
    for chosen in "" "$([ "$1" = glibc ] && echo MALLOC_ARENA_MAX=7 || echo MALLOC_CONF=dirty_decay_ms:1000,muzzy_decay_ms:0)"; do
        rm -f "$WORK/json"
        # shellcheck disable=SC2086  # one setting or none
        in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" $chosen "$MARK" one send site-1 1 >/dev/null 2>&1
        records_satisfy "$WORK/json" '
found = records[0]["settings"]
assert found == sys.argv[2], found' "$chosen"
    done
}

pss() { # MODE: a worker shares 64 MB with its parent, which counts half of them
    marked "$1" '
held = bytearray(b"x") * (64 << 20)
mark("alone")
in_fork(mark, "worker")'
    validate json "$WORK/json"
    records_satisfy "$WORK/json" '
records = {record["stage"]: record for record in records}
assert records["alone"]["pss_bytes"] is None, records
worker = records["worker"]
assert 0 < worker["pss_bytes"] < worker["rss_bytes"] - (24 << 20), worker'
}

identity_is_correct() { # MODE: pid, parent and start time of the record
    marked "$1" '
mark("here")
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
print(os.getpid(), os.getppid(), start)' >"$WORK/identity"
    records_satisfy "$WORK/json" '
record = [r for r in records if r["stage"] == "here"][0]
assert [record["pid"], record["ppid"], record["start"]] == list(map(int, open(sys.argv[2]).read().split())), record
assert record["site"] is None and record["round"] is None, record' "$WORK/identity"
}

names() { # MODE: the name belongs to one process, forks and children have a suffix, lscpu writes nothing
    marked "$1" FLARENA_NAME=trainer-3 '
in_fork(mark, "worker")
subprocess.run(["lscpu"], stdout=subprocess.DEVNULL)
subprocess.run([sys.executable, "-c", "pass"])
library.flarena_note_trainer()
in_fork(mark, "loader")'
    validate json "$WORK/json"
    records_satisfy "$WORK/json" '
found = [(record["stage"], record["proc"], record["name"].split("/python")[0]) for record in records]
child = [("load", "-", "trainer-3"), ("exit", "-", "trainer-3")]
assert found == [
    ("load", "-", "trainer-3"), ("worker", "-", "trainer-3/worker"), *child,
    ("loader", "TR worker", "trainer-3/worker"), ("exit", "TR", "trainer-3"),
], found
assert [record["name"] for record in records].count("trainer-3") == 2, records'
}

many_writers() { # MODE: 8 processes with 16 threads each write to the same two files
    for _ in 1 2 3 4 5 6 7 8; do
        in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "$MARK" many 16 40 2>>"$WORK/text" >/dev/null &
    done
    wait
    validate json "$WORK/json" send=5120 load=8 exit=8
    validate text "$WORK/text" send=5120 load=8 exit=8
}

odd_names() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "$MARK" odd 2>"$WORK/text"
    validate json "$WORK/json" load=1 exit=1 '"quoted" \ back\slash=1' '%s%n%d=1' largest=1 smallest=1
    validate text "$WORK/text" load=1 exit=1
    [ "$(wc -c <"$WORK/text")" -lt 10000 ]
}

pid_in_file_name() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/m-%p-%p.jsonl" "$MARK" fork >/dev/null 2>&1
    ls "$WORK"
    [ "$(find "$WORK" -name 'm-*.jsonl' | wc -l)" -eq 3 ]
    local file pid
    for file in "$WORK"/m-*.jsonl; do
        pid=${file##*-}
        [ "$file" = "$WORK/m-${pid%.jsonl}-$pid" ]
        python3 -c 'import json, sys; assert {json.loads(line)["pid"] for line in open(sys.argv[1])} == {int(sys.argv[2])}' \
            "$file" "${pid%.jsonl}"
    done
}

children_count_from_zero() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" "$MARK" fork >/dev/null 2>&1
    validate json "$WORK/json" load=1 parent=1 child=2 exit=3
}

trim_events() { # MODE
    marked "$1" 'library.flarena_trim()'
    validate json "$WORK/json" load=1 before_trim=1 after_trim=1 exit=1
}

history_without_stages() { # MODE
    marked "$1" '
held = [bytearray(b"x") * (10 << 20) for _ in range(10)]
await_marker(lambda m: m["stage"] == "periodic" and m["rss_bytes"] > 100 << 20)'
    validate json "$WORK/json" load=1 exit=1
    records_satisfy "$WORK/json" '
import os
held = [r for r in records if r["stage"] == "periodic"][-1]
assert held["rss_bytes"] > 100 << 20, held
assert held["program"] == os.path.basename(os.path.realpath(sys.argv[2])), held' "$PYTHON"
}

# The program grows by 300 MB after its only stage, and is killed.
growth_after_a_stage() { # MODE
    ! marked "$1" '
mark("train", b"site-1", 3)
held = [bytearray(b"x") * (10 << 20) for _ in range(30)]
await_marker(lambda m: m["stage"] == "periodic" and m["rss_bytes"] > 290 << 20)
os.kill(os.getpid(), signal.SIGKILL)' || return
    validate json "$WORK/json" load=1 train=1 exit=0
    tail -n 1 "$WORK/json"
    records_satisfy "$WORK/json" '
last = records[-1]
assert (last["stage"], last["site"], last["round"]) == ("periodic", "site-1", 3), last
assert last["rss_bytes"] > 290 << 20, last'
}

# A command line may contain secrets. A marker contains only an existing script's file name or a module's name.
program_names() { # MODE
    local folder=$WORK/job python expected program arguments
    python=$(basename "$(realpath "$PYTHON")")
    mkdir -p "$folder" && : >"$folder/train.py" && : >"$folder/loop.py" && cp "$MARK" "$folder/pythonapp"
    while read -r expected program arguments; do
        rm -f "$WORK/names"
        # shellcheck disable=SC2086 # words
        (cd "$folder" && in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/names" "$program" $arguments) >"$WORK/output" 2>&1 || true
        printf '%s %s: %s\n' "$program" "$arguments" "$(cat "$WORK/names")"
        grep -q "\"program\":\"$expected\"" "$WORK/names" || return
        ! grep -v "\"program\":\"$expected\"" "$WORK/names" || return
        # Python prints the name of a missing script.
        ! cat "$WORK/names" "$WORK/output" | grep -v "can't open file" | grep secret || return
    done <<END
train.py $PYTHON train.py --token secret
train.py $PYTHON -u -W ignore $folder/train.py secret
loop $PYTHON -m loop --token=secret
$python $PYTHON -c secret=1 secret
$python $PYTHON secret.py
pythonapp ./pythonapp -m secret
pythonapp ./pythonapp train.py secret
END
}

helpers_do_not_mark() { # MODE: the start scripts of a kit run many of these
    in_mode "$1" $PROFILE sh -c 'sleep 0; bash -c true; uname; date; basename /x/y | tr x y | cut -c 1 | sort | head -n 1 | tail -n 1 | wc' >/dev/null 2>"$WORK/err"
    cat "$WORK/err"
    [ ! -s "$WORK/err" ]
}

contains_no_secret() { # MODE
    in_mode "$1" $PROFILE FLARENA_MARKER_FILE="$WORK/json" FLARENA_LOG=info SECRET=tok3n-in-environ \
        "$PYTHON" -c 'import ctypes; ctypes.CDLL(None).flarena_mark(b"x", None, 1)' --token tok3n-in-argv >"$WORK/all" 2>&1
    cat "$WORK/json" >>"$WORK/all"
    ! grep tok3n "$WORK/all"
}

check_mode() { # MODE SENTENCE FUNCTION [ARGUMENT...]: with an empty directory WORK
    local mode=$1 sentence=$2
    shift 2
    WORK=$SCRATCH/work
    rm -rf "$WORK"
    mkdir "$WORK"
    check "$mode: $sentence" "$1" "$mode" "${@:2}"
}

need gcc
gcc -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -pthread marker.c -o "$MARK" -ldl || exit 1
for mode in glibc jemalloc; do
    check_mode $mode "markers are off by default, and at a terminal two lines of at most 80 columns name the option that shows them" off_by_default
    check_mode $mode "flarena_mark returns whether the marker was written, for good and bad stderr and file" mark_results
    check_mode $mode "the text form is that of NVFlare" text_form
    check_mode $mode "the JSON form has every key in order, with plausible numbers" json_form
    check_mode $mode "a marker has the CPU time of the process" cpu_time
    check_mode $mode "a marker has the monotonic time that CLOCK_BOOTTIME shows" monotonic_time
    check_mode $mode "markers have the soft limit, and the first one the memory of the machine" limits
    check_mode $mode "the peak of a marker is VmHWM if that has risen, and else the highest size that was measured" peaks
    check_mode $mode "markers have the sizes of PyTorch's cache on the GPUs once CUDA runs, and a forked child has none" gpu_cache
    check_mode $mode "markers have the job of the command line, of the parent or of the received model, and no more of it than 8 characters" jobs
    check_mode $mode "each record of processes with equal pid in several pid namespaces tells its process" boot
    check_mode $mode "without a readable boot id the boot is null" boot_is_unknown
    check_mode $mode "the first marker names arenas or decay if the user chose them" chosen_settings
    check_mode $mode "the name is that of one process, a fork is a worker, and lscpu writes no marker" names
    check_mode $mode "pid, parent and start time are those of the process" identity_is_correct
    check_mode $mode "the marker of a forked worker has its PSS, that of a process without a fork has none" pss
    check_mode $mode "when 128 threads of 8 processes append to one file, no line is torn or lost" many_writers
    check_mode $mode "NULL, huge, quoted, multi-line and invalid names lead to valid lines" odd_names
    check_mode $mode "%p in the file name is replaced by the pid, also in forked children" pid_in_file_name
    check_mode $mode "a forked child counts its markers from 0" children_count_from_zero
    check_mode $mode "flarena_trim writes a marker before and after the trim" trim_events
    check_mode $mode "a process without stages gets periodic markers with its program's name" history_without_stages
    check_mode $mode "growth after a program's last stage is in a periodic marker, also if the program is killed" growth_after_a_stage
    check_mode $mode "the program of a Python process is its script or module, and no marker contains an argument" program_names
    check_files $mode
    check_mode $mode "sh, sleep, date, cut, sort and other small commands write no marker" helpers_do_not_mark
    check_mode $mode "no marker and no message contains an argument or a value of the environment" contains_no_secret
done
finish
