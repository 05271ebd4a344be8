"""markers.py processes|sends FILE...: prints parts of marker files.

processes: one line `PROC ALLOCATOR` for each process. sends: the rounds that trainers sent, in order of time.
"""

import json
import sys


def markers(files):
    for name in files:
        with open(name) as file:
            yield from map(json.loads, file)


def processes(found):
    for proc, alloc, *_ in sorted({(m["proc"], m["alloc"], m["pid"], m["start"]) for m in found}):
        if proc != "-":  # shells and other helpers
            print(proc, alloc)


def sends(found):
    rounds = [(m["t"], m["round"]) for m in found if m["proc"] == "TR" and m["stage"] == "send"]
    print(*(number for _, number in sorted(rounds)))


what, *files = sys.argv[1:]
{"processes": processes, "sends": sends}[what](list(markers(files)))
