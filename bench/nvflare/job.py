"""An NVFlare FedAvg job in the simulator, with external trainers and equal arrays.

    job.py --model FILE.npz --workspace DIR --rounds N
    job.py --model FILE.npz --make COUNTxSIZEMB

BENCH_GC_ROUNDS=N runs NVFlare's cleanup after each N-th round, on the server and on the clients.
"""

import argparse
import os
import sys

import numpy

CLIENTS = 2


def make_model(path, shape):
    count, size_mb = shape.removesuffix("MB").split("x")
    generator = numpy.random.default_rng(1)
    arrays = {f"w{i}": generator.random(int(size_mb) << 18, dtype=numpy.float32) for i in range(int(count))}
    numpy.savez(path, **arrays)


def simulate(options):
    from arrays import ArraysPersistor
    from nvflare.client.config import ExchangeFormat
    from nvflare.job_config.script_runner import FrameworkType
    from nvflare.recipe import SimEnv
    from nvflare.recipe.fedavg import FedAvgRecipe

    model, gc_rounds = os.path.abspath(options.model), int(os.environ.get("BENCH_GC_ROUNDS", "0"))
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    recipe = FedAvgRecipe(
        name="bench",
        model_persistor=ArraysPersistor(model),
        min_clients=CLIENTS,
        num_rounds=options.rounds,
        train_script="train.py",
        launch_external_process=True,
        framework=FrameworkType.NUMPY,
        server_expected_format=ExchangeFormat.NUMPY,
        command=f"{sys.executable} -u",
        server_memory_gc_rounds=gc_rounds,
        client_memory_gc_rounds=gc_rounds,
    )
    recipe.execute(SimEnv(num_clients=CLIENTS, workspace_root=options.workspace))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--make")
    parser.add_argument("--workspace")
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    make_model(options.model, options.make) if options.make else simulate(options)


if __name__ == "__main__":
    main()
