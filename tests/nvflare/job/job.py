"""The job of the tests: FedAvg over two sites, whose trainer is train.py.

job.py simulate external|in-process ROUNDS FOLDER   runs it in NVFlare's simulator, with its workspace in FOLDER
job.py export   external|in-process ROUNDS FOLDER   writes it to FOLDER/job for `submit.py`
"""

import os
import shlex
import sys

from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe import SimEnv


def recipe(trainers, rounds):
    os.chdir(os.path.dirname(os.path.abspath(__file__)))  # NVFlare 2.7 takes a trainer by its relative path only
    return NumpyFedAvgRecipe(
        name="job",
        model=[[1.0, 2.0], [3.0, 4.0]],
        min_clients=2,
        num_rounds=int(rounds),
        train_script="train.py",
        launch_external_process=trainers == "external",
        command=shlex.join([sys.executable, "-u"]),
        client_memory_gc_rounds=1,
    )


def main(action, trainers, rounds, folder, *_):
    if action == "simulate":
        recipe(trainers, rounds).execute(SimEnv(num_clients=2, workspace_root=folder))
    else:
        recipe(trainers, rounds).export(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
