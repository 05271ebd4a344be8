"""logged.py MARKERS LOG...: each marker of a hook in a job's process is in the site's log once.

The first log is the output of the whole job, which contains each of these lines once, too.
"""

import collections
import json
import re
import sys

BY_LIBRARY = ("load", "exit", "periodic", "before_trim", "after_trim")


def places(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        found = re.findall(r"\[RSS\] (?:CJ|SJ|SIM) s=(\S+) r=(\S+) (\w+): \S+ MB", lines.read())
    return collections.Counter(place for place in found if place[2] not in (*BY_LIBRARY, "relay"))


def main(markers, output, *logs):
    expected = collections.Counter()
    with open(markers, encoding="utf-8") as lines:
        for marker in map(json.loads, lines):
            if marker["proc"] in ("CJ", "SJ", "SIM") and marker["stage"] not in BY_LIBRARY:
                round = "-" if marker["round"] is None else str(marker["round"])
                expected[marker["site"], round, marker["stage"]] += 1
    assert sum(expected.values()) > 20, expected
    logged = sum(map(places, logs), collections.Counter())
    assert logged == expected, (logged - expected, expected - logged)
    assert places(output) == expected, (places(output) - expected, expected - places(output))


main(*sys.argv[1:])
