"""train.py MEGABYTES: the trainer of a site, with a model of eight NumPy arrays and SGD with momentum."""

import sys

import numpy as np
import nvflare.client as flare

ARRAYS = 8
STEPS = 3


def main(megabytes):
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        update = flare.FLModel(params=train(model.params or initial(int(megabytes))))
        flare.send(update)
        del model, update


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


main(*sys.argv[1:])
