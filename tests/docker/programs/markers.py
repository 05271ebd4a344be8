"""markers.py processes|sends FILE...: prints parts of marker files.

processes: the processes and their allocators, such as `CJ,TR jemalloc`. sends: the rounds that trainers sent, in order
of time.
"""

import json
import sys


def markers(files):
    for name in files:
        with open(name) as file:
            yield from map(json.loads, file)


def processes(found):
    known = [m for m in found if m["proc"] != "-"]  # shells and other helpers
    print(*(",".join(sorted({m[key] for m in known})) for key in ("proc", "alloc")))


def sends(found):
    rounds = [(m["t"], m["round"]) for m in found if m["proc"] == "TR" and m["stage"] == "send"]
    print(*(number for _, number in sorted(rounds)))


what, *files = sys.argv[1:]
{"processes": processes, "sends": sends}[what](list(markers(files)))
