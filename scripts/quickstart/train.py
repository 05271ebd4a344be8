"""train.py MEGABYTES STAGES_FILE: the trainer of a site, with a model of eight NumPy arrays and SGD with momentum.

It records its RSS of /proc after each stage, which works with any allocator.
"""

import json
import os
import sys

import numpy as np
import nvflare.client as flare

ARRAYS = 8
STEPS = 3


def main(megabytes, stages_file):
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        site, round_number = flare.get_site_name(), model.current_round
        note(stages_file, site, round_number, "receive")
        update = flare.FLModel(params=train(model.params or initial(int(megabytes))))
        note(stages_file, site, round_number, "train")
        flare.send(update)
        del model, update
        note(stages_file, site, round_number, "send")


def initial(megabytes):
    rng = np.random.default_rng(seed=1)
    elements = megabytes * 1024 * 1024 // ARRAYS // np.dtype(np.float32).itemsize
    return {f"layer{n}": rng.standard_normal(elements, dtype=np.float32) for n in range(ARRAYS)}


def train(params):
    trained = {}
    for name, weights in params.items():
        momentum = np.zeros_like(weights)
        for _ in range(STEPS):
            gradient = weights * np.float32(0.01)
            momentum = momentum * np.float32(0.9) + gradient
            weights = weights - np.float32(0.1) * momentum
        trained[name] = weights
    return trained


def note(path, site, round_number, stage):
    with open("/proc/self/statm") as statm:
        rss_bytes = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    line = json.dumps({"site": site, "round": round_number, "stage": stage, "rss_bytes": rss_bytes})
    with open(path, "a") as file:
        file.write(line + "\n")


main(*sys.argv[1:])
