"""Parses markers strictly; prints the first problem and exits 1.

validate.py json FILE [STAGE=COUNT...]   every line is a JSON record with the documented keys
validate.py text FILE [STAGE=COUNT...]   every line has NVFlare's form
"""

import collections
import json
import re
import sys
import time

KEYS = """
v t mono pid ppid start boot proc program name role site round stage job alloc rss_bytes anon_bytes file_bytes
shmem_bytes pss_bytes swap_bytes hwm_bytes peak_bytes live_bytes retained_bytes recycled_bytes
pymalloc_bytes arrow_bytes pinned_bytes gpu_allocated_bytes gpu_reserved_bytes
cgroup_bytes cgroup_reclaimable_bytes cgroup_limit_bytes cgroup cgroup_oom_kills memory_limit_bytes
gc_released_bytes gc_ms gc_live_after_bytes cpu_ms host host_memory_bytes version settings seq
""".split()
TEXT = re.compile(r"\[RSS\] (SP|SJ|CP|CJ|TR|SIM|-) s=(\S+) r=(-?\d+|-) (.*): (\d+\.\d) MB")


def check(condition, *seen):
    if not condition:
        print(*seen)
        sys.exit(1)


def read_json(lines):
    seen = set()
    for line in lines:
        record = json.loads(line.decode())
        check(list(record) == KEYS, "keys:", list(record))
        check(record["v"] == 1, record)
        check(abs(record["t"] - time.time()) < 600, "time:", record["t"])
        check(abs(record["mono"] - time.clock_gettime(time.CLOCK_BOOTTIME)) < 600, "time:", record["mono"])
        for key in ("boot", "cgroup"):
            check(record[key] is None or re.fullmatch("[0-9a-f]{8}", record[key]), record)
        check(record["job"] is None or re.fullmatch("[0-9a-fA-F]{8}", record["job"]), record)
        check(len(record["stage"].encode()) <= 128 + 3, "stage too long:", record["stage"])
        check(record["proc"] in ("SP", "SJ", "CP", "CJ", "TR", "TR worker", "SIM", "-"), record)
        check(record["alloc"] in ("glibc", "jemalloc"), record)
        for key in ("host", "version", "settings"):
            check((record[key] is not None) == (record["seq"] == 0), key, record)
        check(record["host_memory_bytes"] is None or record["seq"] == 0, record)
        for key in KEYS:
            if key.endswith("_bytes"):
                check(record[key] is None or (isinstance(record[key], int) and record[key] >= 0), key, record)
        check(record["rss_bytes"] is None or record["rss_bytes"] <= record["peak_bytes"] <= record["hwm_bytes"], record)
        identity = record["boot"], record["pid"], record["start"], record["seq"]
        check(identity not in seen, "duplicate:", identity)
        seen.add(identity)
        yield record["stage"]
    check_sequences(seen)


def check_sequences(seen):
    """The sequence numbers of each process run from 0 without a gap, so that no marker is lost."""
    numbers = collections.defaultdict(list)
    for *process, seq in seen:
        numbers[tuple(process)].append(seq)
    for process, found in numbers.items():
        check(sorted(found) == list(range(len(found))), "process", process, "has", sorted(found))


def read_text(lines):
    for line in lines:
        match = TEXT.fullmatch(line.decode())
        check(match, "not a marker:", line[:300])
        yield match[4]


def main():
    form, name, *expected = sys.argv[1:]
    with open(name, "rb") as file:
        content = file.read()
    check(content == b"" or content.endswith(b"\n"), "the last line is torn:", content[-300:])
    reader = {"json": read_json, "text": read_text}[form]
    stages = collections.Counter(reader(content.split(b"\n")[:-1]))
    for wanted in expected:
        stage, count = wanted.rsplit("=", 1)
        check(stages[stage] == int(count), f"{stage}: {stages[stage]}, not {count};", dict(stages.most_common(20)))


main()
