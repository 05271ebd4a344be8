"""The job of the tests: FedAvg over two sites, whose trainer is train.py.

job.py simulate external|in-process ROUNDS FOLDER   runs it in NVFlare's simulator, with its workspace in FOLDER
job.py export   external|in-process ROUNDS FOLDER [MB]   writes it to FOLDER/job for `submit.py`

The trainer of site-2 keeps MB megabytes in each round, and since NVFlare 2.9 the server receives the logs of the sites.
"""

import os
import shlex
import sys

from nvflare.app_common.np.recipes.fedavg import NumpyFedAvgRecipe
from nvflare.recipe import SimEnv


def recipe(trainers, rounds, leak):
    os.chdir(os.path.dirname(os.path.abspath(__file__)))  # NVFlare 2.7 takes a trainer by its relative path only
    return NumpyFedAvgRecipe(
        name="job",
        model=[[1.0, 2.0], [3.0, 4.0]],
        min_clients=2,
        num_rounds=int(rounds),
        train_script="train.py",
        train_args=leak,
        launch_external_process=trainers == "external",
        command=shlex.join([sys.executable, "-u"]),
        client_memory_gc_rounds=1,
    )


def main(action, trainers, rounds, folder, leak="0", *_):
    if action == "simulate":
        recipe(trainers, rounds, "0").execute(SimEnv(num_clients=2, workspace_root=folder))
        return
    job = recipe(trainers, rounds, leak)
    if leak != "0" and hasattr(job, "enable_log_streaming"):
        job.enable_log_streaming("log.txt")
    job.export(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
