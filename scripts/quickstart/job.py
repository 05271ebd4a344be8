"""job.py ARGUMENTS ROUNDS FOLDER [TRAINER]: FedAvg in NVFlare's simulator, two sites, each with an external trainer."""

import os
import shlex
import shutil
import sys

from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

SITES = ("site-1", "site-2")
TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")


def main(arguments, rounds, folder, trainer=TRAINER):
    os.chdir(os.path.dirname(trainer))
    job = FedJob(name="quickstart", min_clients=len(SITES))
    # The model is empty and the trainers fill it: a model of this size does not fit into a job's configuration.
    job.to_server(FedAvg(num_clients=len(SITES), num_rounds=int(rounds), model={}))
    for site in SITES:
        runner = ScriptRunner(
            script=os.path.basename(trainer),
            script_args=arguments,
            launch_external_process=True,
            command=shlex.join([sys.executable, "-u"]),
            framework=FrameworkType.NUMPY,
        )
        job.to(runner, site)
    workspace = os.path.join(folder, "workspace")
    shutil.rmtree(workspace, ignore_errors=True)
    sys.exit(job.simulator_run(workspace, threads=len(SITES)))


if __name__ == "__main__":
    main(*sys.argv[1:])
