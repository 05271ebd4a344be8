"""Writes the marker files that cases.txt reads, into the current folder."""

import json
import platform
import time

MB = 1 << 20
SIZES = "rss hwm anon file shmem swap live retained recycled cgroup cgroup_reclaimable cgroup_limit".split()
HERE = platform.node()


def write(name, markers, **common):
    """Writes markers with the fields that are `common`. Sizes are in MB. `near` is the limit of a group that holds only
    this process."""
    written = {}  # markers of each pid
    with open(name + ".jsonl", "w") as file:
        for marker in markers:
            record = {"v": 1, "pid": 7, "start": 1, "proc": "TR", "site": "site-1", "round": None} | common | marker
            if limit := record.pop("near", None):
                record |= {
                    "cgroup": record["rss"],
                    "cgroup_reclaimable": 0,
                    "cgroup_limit": limit,
                    "cgroup_oom_kills": 0,
                }
            for size in SIZES:
                if (value := record.pop(size, None)) is not None:
                    record[size + "_bytes"] = int(value * MB)
            record["seq"] = written[record["pid"]] = written.get(record["pid"], -1) + 1
            file.write(json.dumps(record) + "\n")


def at(t, stage, rss, **more):
    return {"t": t, "stage": stage, "rss": rss, **more}


def rounds(count, rss, **sizes):
    """A marker a minute. The sizes are functions of the round."""
    return [
        at(60 * i, "send", rss(i), round=i, **{name: size(i) for name, size in sizes.items()}) for i in range(count)
    ]


write("warm", rounds(60, lambda i: 600 - 400 * max(0, 1 - i / 20)), file=1)

# 10 MB a round, 150 MB more inside each round, and a pause of 10 h. Markers name no limit.
grows = rounds(30, lambda i: 500 + 10 * i, hwm=lambda i: 650 + 10 * i)
write("peaks", (one | {"t": one["t"] + (36000 if one["round"] > 9 else 0)} for one in grows))

# 8 MB of cached pages come and go.
cached = [8 * (i in (1, 2, 3, 4, 8, 9, 10, 13)) for i in range(16)]
comes = rounds(16, lambda i: 28 + cached[i], anon=lambda i: 14 + cached[i], recycled=lambda i: cached[i])
write("cached", comes, live=4, retained=0.6)

# The limit is 1 GB above the first marker, and the process grows by 10 MB a minute.
limited = rounds(40, lambda i: 500 + 10 * i, cgroup=lambda i: 800 + 10 * i)
write("limited", limited, proc="-", program="train", site=None, cgroup_reclaimable=300, cgroup_limit=1914)

for name, base, growth, cpu in (("before", 2600, 0, 1600), ("after", 1800, 0, 1520), ("leak", 1800, 5, 1520)):
    write(name, rounds(40, lambda i, b=base, g=growth: b + g * i + i % 3, cpu_ms=lambda i, c=cpu: c * i))

# Two processes without times beside one with times.
undated = [one | {"pid": pid, "site": f"site-{pid}"} for pid in (1, 2, 3) for one in rounds(6, lambda i: 100)]
write("undated", ({key: value for key, value in one.items() if key != "t" or one["pid"] == 3} for one in undated))

# A long series is stored in fewer points.
write("long", (at(10 * i + n, "send" if n else "receive", 300 + n, round=i) for i in range(10000) for n in (0, 1)))

# One stage, then 10 MB/s for 80 s, to 775 MB.
ramp = [at(0, "load", 5), at(1, "train", 15), *(at(t, "periodic", 5 + 10 * t) for t in range(2, 80, 3))]
write("killed", ramp, pid=4000000, round=12, near=800)
write("far", ramp, pid=4000000, round=12, near=850)
write("exited", [*ramp[:-1], at(77, "exit", 775)], pid=4000000, round=12, near=800)

# The trainer of site-2 writes nothing after round 3, while the others do eight rounds.
start = 1795156366
job = [at(start, "load", 812), *rounds(8, lambda i: 812), at(start + 600, "exit", 812)]
job[1:-1] = (one | {"t": start + 60 + one["t"]} for one in job[1:-1])
of_site = ((n, one) for n in (1, 2, 3) for one in (job[:5] if n == 2 else job))
write("silent", (one | {"pid": 4000000 + n, "site": f"site-{n}"} for n, one in of_site), host=HERE)

# A program that last wrote so many seconds ago, near its limit.
for name, host, seconds in (("busy", "other-host", 5), ("gone", "other-host", 600), ("here", HERE, 5)):
    end = time.time() - seconds
    train = [at(end - 8 + n, "train", 880 + 10 * n, round=n + 1) for n in range(9)]
    write(name, [at(end - 9, "load", 5, round=0), *train], pid=4000000, host=host, near=1000)

# Hard to draw: long names, a limit within the data, swap, few and many rounds.
kinds = [(1914, 40, 0), (900, 3, 300), (None, 12, 0), (70000, 300, 2000)]
seconds = {"before_aggregation": 3, "after_aggregation": 3, "a_stage_with_a_very_long_name_indeed": 9, "send": 25}
edge = (
    at(60 * i + second, stage, rss, round=i, pid=pid, anon=rss - 5, hwm=rss, swap=swap, live=rss * 2 // 3)
    | {"cgroup": rss + 300, "cgroup_limit": limit}
    for pid, (limit, count, swap) in enumerate(kinds)
    for i in range(count)
    for rss in [500 + 10 * i]
    for stage, second in seconds.items()
)
same = {"file": 5, "shmem": 0, "retained": 50, "recycled": 20, "cgroup_reclaimable": 0}
write("edge", edge, proc="-", program="a-program-with-a-long-name", site=None, **same)
