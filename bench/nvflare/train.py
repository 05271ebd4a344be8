"""Trainer of the job: gradient steps with temporary arrays, then sleep until `--train-s` has passed, as with a GPU."""

import argparse
import time

import numpy
import nvflare.client as flare


def train(params, seconds):
    start = time.monotonic()
    for name, weights in params.items():  # NumPy arrays or tensors
        gradient = weights * 0.01 + 0.001
        params[name] = weights - gradient * 0.1
    time.sleep(max(0.0, start + seconds - time.monotonic()))
    return params


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-s", type=float, default=1.0)
    options = parser.parse_args()
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        params = train(model.params, options.train_s)
        print(
            f"BENCH round {model.current_round}: mean {numpy.mean([float(p.mean()) for p in params.values()]):.6f}",
            flush=True,
        )
        flare.send(flare.FLModel(params=params, metrics={"accuracy": 0.5}))


main()
