#!/usr/bin/env python3
"""Writes JSON-line markers of a synthetic job: many sites, many rounds, eight stages per round.

Of four sites one leaks, one retains memory, one grows in file pages and one is flat. Equal arguments write equal bytes.
"""

import argparse
import random
import sys

STAGES = (
    "receive",
    "before_train",
    "after_train",
    "before_send",
    "send",
    "after_send_result",
    "before_trim",
    "after_trim",
)
MB = 1024 * 1024
KINDS = ("flat", "leak", "retention", "file")


def markers(site, rounds, seed):
    """The markers of one site, without newlines."""
    rng = random.Random(seed)
    kind = KINDS[site % 4]
    limit = 4096 * MB
    hwm, seq, t = 0, 0, 1_763_619_820.0 + site * 0.37
    grown = 0.0
    for number in range(rounds):
        grown += rng.uniform(1.0, 3.0) * MB
        warm = 1 - 0.6 * (0.5**number)
        for index, stage in enumerate(STAGES):
            busy = (0.3, 0.9, 1.0, 0.95, 0.8, 0.4, 0.3, 0.1)[index]
            live = (300 + 400 * busy) * MB * warm + rng.gauss(0, 4) * MB
            held = (40 + 80 * (1 - busy)) * MB + rng.gauss(0, 3) * MB
            file = 90 * MB
            live += grown if kind == "leak" else 0
            held += grown if kind == "retention" else 0
            file += grown if kind == "file" else 0
            live, held, file = int(live), int(max(held, 0)), int(file)
            anon = live + held + 20 * MB
            rss = anon + file
            hwm = max(hwm, rss)
            t += rng.uniform(0.5, 1.5)
            yield (
                f'{{"v":1,"t":{t:.6f},"pid":{1000 + site},"ppid":1,"start":{77000 + site},'
                f'"proc":"CJ","role":"client","site":"site-{site + 1}","round":{number},'
                f'"stage":"{stage}","alloc":"{"jemalloc" if site % 2 else "glibc"}",'
                f'"rss_bytes":{rss},"anon_bytes":{anon},"file_bytes":{file},"shmem_bytes":0,'
                f'"swap_bytes":0,"hwm_bytes":{hwm},"live_bytes":{live},'
                f'"retained_bytes":{held},"recycled_bytes":{0},'
                f'"cgroup_bytes":{rss + 50 * MB},"cgroup_limit_bytes":{limit},"seq":{seq}}}'
            )
            seq += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for site in range(args.sites):
        lines = markers(site, args.rounds, args.seed * 1000 + site)
        sys.stdout.write("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
