"""Writes markers that are hard to draw: long names, a limit within the data, swap, few and many rounds."""

import json

MB = 1 << 20
STAGES = {"before_aggregation": 3, "after_aggregation": 3, "a_stage_with_a_very_long_name_indeed": 9, "send": 25}

for pid, (limit, rounds, swap) in enumerate([(1914, 40, 0), (900, 3, 300), (None, 12, 0), (70000, 300, 2000)]):
    for number in range(rounds):
        for stage, second in STAGES.items():
            rss = (500 + 10 * number) * MB
            marker = {
                "v": 1,
                "t": 60 * number + second,
                "pid": pid + 7,
                "start": 1,
                "proc": "-",
                "program": "a-program-with-a-long-name",
                "site": None,
                "round": number,
                "stage": stage,
                "rss_bytes": rss,
                "anon_bytes": rss - 5 * MB,
                "file_bytes": 5 * MB,
                "shmem_bytes": 0,
                "swap_bytes": swap * MB,
                "hwm_bytes": rss,
                "live_bytes": rss * 2 // 3,
                "retained_bytes": 50 * MB,
                "recycled_bytes": 20 * MB,
                "cgroup_bytes": rss + 300 * MB,
                "cgroup_reclaimable_bytes": 0,
                "cgroup_limit_bytes": limit and limit * MB,
                "seq": number * len(STAGES) + second,
            }
            print(json.dumps(marker))
