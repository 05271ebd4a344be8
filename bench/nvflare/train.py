"""Trainer of the job: gradient steps with temporary arrays, then sleep until a second has passed, as with a GPU."""

import time

import numpy
import nvflare.client as flare


def train(params):
    start = time.monotonic()
    for name, weights in params.items():  # NumPy arrays or tensors
        gradient = weights * 0.01 + 0.001
        params[name] = weights - gradient * 0.1
    time.sleep(max(0.0, start + 1 - time.monotonic()))
    return params


def main():
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        params = train(model.params)
        mean = numpy.mean([float(p.mean()) for p in params.values()])
        print(f"BENCH round {model.current_round}: mean {mean:.6f}", flush=True)
        flare.send(flare.FLModel(params=params, metrics={"accuracy": 0.5}))


main()
