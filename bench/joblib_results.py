"""A sweep with joblib: in each round 1500 arrays of 400 KB come back from two workers and are dropped.

Prints a line of JSON: RSS of the parent with the results, after they were dropped (medians of the rounds) and at rest.
"""

import json
import os
import statistics
import time

import numpy
from joblib import Parallel, delayed

ROUNDS, RESULTS, REST_S = 6, 1500, 5


def one(number):
    return numpy.ones(50_000) * number


def rss_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    held, dropped, checksum = [], [], 0.0
    for _ in range(ROUNDS):
        results = Parallel(n_jobs=2)(delayed(one)(number) for number in range(RESULTS))
        held.append(rss_bytes())
        checksum += sum(float(result[0]) for result in results)
        del results
        dropped.append(rss_bytes())
    time.sleep(REST_S)
    report = {"held_bytes": statistics.median(held), "dropped_bytes": statistics.median(dropped)}
    print(json.dumps({**report, "rest_bytes": rss_bytes(), "checksum": checksum}))


if __name__ == "__main__":
    main()
