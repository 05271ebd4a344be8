"""verify.py MARKERS MODE ROUNDS TRAINERS: checks that the marker file of a job is complete.

The trainer's process marks each receive and send once for each site and round. Server and sites mark each event once.
Each line is valid and names the expected allocator.
"""

import collections
import json
import sys

SITES = ("site-1", "site-2")
TRAINER = ("receive", "before_send", "send")
CLIENT = ("before_task", "after_task", "after_send_result")
SERVER = ("round_started", "before_aggregation", "after_aggregation")


def expected(rounds):
    for round in range(rounds):
        yield from ((site, round, stage) for site in SITES for stage in TRAINER + CLIENT)
        yield from (("server", round, stage) for stage in SERVER)
    yield from ((site, None, stage) for site in (*SITES, "server") for stage in ("start_run", "end_run"))


def main(path, mode, rounds, trainers):
    with open(path, encoding="utf-8") as lines:
        markers = [json.loads(line) for line in lines]
    seen = collections.Counter((m["site"], m["round"], m["stage"]) for m in markers)
    wrong = [f"{place}: {seen[place]} times" for place in expected(int(rounds)) if seen[place] != 1]
    known = set(expected(int(rounds)))
    for m in markers:
        place = (m["site"], m["round"], m["stage"])
        if m["stage"] in TRAINER + CLIENT + SERVER and place not in known:
            wrong.append(f"{place}: not a place of this job")
        if m["alloc"] != mode or not m["rss_bytes"] > 1 << 20:
            wrong.append(f"alloc or rss of {m}")
        if m["stage"] in TRAINER and m["proc"] != ("TR" if trainers == "external" else "CJ"):
            wrong.append(f"proc of {m}")
    trims = collections.Counter((m["proc"], m["site"]) for m in markers if m["stage"] == "after_trim")
    for site in SITES:  # the recipe's client_memory_gc_rounds is 1; a trainer may end before its last cleanup
        if trims["CJ", site] != int(rounds) or (trainers == "external" and not trims["TR", site]):
            wrong.append(f"cleanups of {site}: {trims}")
    if not any(m["gc_ms"] is not None for m in markers if m["site"] in SITES):
        wrong.append("the collections of NVFlare's own cleanup were not counted")
    sys.exit("\n".join(wrong[:20]) or None)


main(*sys.argv[1:])
