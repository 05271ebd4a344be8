"""Shared by the programs in Python: memory, trims, idle phases, the final line of JSON."""

import ctypes
import json
import os
import statistics
import time


def status_bytes(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    return 0


def trim_if_requested():
    """BENCH_TRIM=1 marks the contender whose application calls malloc_trim after each round."""
    if os.environ.get("BENCH_TRIM") == "1":
        ctypes.CDLL(None).malloc_trim(0)


def run(rounds, one_round, idle_s, final_idle_s):
    """Runs the rounds, each with an idle phase after it; returns their times and the idle memory."""
    times, idle_bytes = [], []
    for number in range(rounds):
        start = time.monotonic()
        one_round(number)
        trim_if_requested()
        times.append(time.monotonic() - start)
        time.sleep(final_idle_s if number == rounds - 1 else idle_s)
        idle_bytes.append(status_bytes("VmRSS"))
    return {
        "round_s": statistics.median(times),
        "rounds_s": times,
        "idle_bytes": idle_bytes[-1],
        "idle_between_bytes": statistics.median(idle_bytes),
        "hwm_bytes": status_bytes("VmHWM"),
    }


def report(**values):
    print(json.dumps(values), flush=True)
