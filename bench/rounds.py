"""What the round-based programs share: the trim of the peers that need one, idle phases, the final line."""

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


def trim_when_asked():
    """BENCH_TRIM=1 marks the contender whose application calls malloc_trim after each round."""
    if os.environ.get("BENCH_TRIM") == "1":
        ctypes.CDLL(None).malloc_trim(0)


def play(rounds, one_round, idle_s, final_idle_s):
    """Plays the rounds, each followed by an idle phase; reports round times and the memory of an idle process."""
    times, idle_bytes = [], []
    for number in range(rounds):
        start = time.monotonic()
        one_round(number)
        trim_when_asked()
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
