"""check_records.py FILE SECRET: the records of rounds.py have each stack once, right sizes and ages, no argument."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
assert sys.argv[2] not in text
records = [json.loads(line) for line in text.splitlines()]
stacks = [record for record in records if record.get("kind") == "stack"]
counted = [record for record in records if record.get("kind") == "sites"]
names = {stack["site"]: [frame[2] for frame in stack.get("frames", [])] for stack in stacks}
assert len(names) == len(stacks), "a stack is recorded twice"
growing = next(site for site, functions in names.items() if "keep_more" in functions)
held = [
    next((one for one in record["sites"] if one["site"] == growing), None)
    for record in counted
    if record["round"] is not None
]
last = held[3]
assert [one["blocks"] for one in held[:4]] == [1, 2, 3, 4], held
assert last["bytes"] >= 4 * (3 << 20) and last["oldest"] >= 2 and last["median"] in (1, 2), last
markers = {record["seq"] for record in records if "stage" in record}
assert {record["marker"] for record in counted} <= markers
ends = {record["seq"] for record in records if record.get("stage") == "exit"}
assert ends and not ends & {record["marker"] for record in counted}, "the exit marker has sites"
