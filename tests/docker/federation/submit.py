"""submit.py ADMIN_KIT MODEL_ON_SERVER ROUNDS SITES...: submits a job to connected sites, and prints its status.

Exit status 0: the job has ended.
"""

import contextlib
import os
import sys
import tempfile
import time

from nvflare.app_common.aggregators import InTimeAccumulateWeightedAggregator
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.shareablegenerators import FullModelShareableGenerator
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.fuel.flare_api.flare_api import new_secure_session
from nvflare.fuel.utils.constants import FrameworkType
from nvflare.job_config.api import FedJob
from nvflare.job_config.script_runner import ScriptRunner

TRAINER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trainer.py")
PATIENCE_SECONDS = 240
GATHER_SECONDS = 6  # the trainers begin together, so their answers differ by less


def wait_for(what, ready):
    deadline = time.monotonic() + PATIENCE_SECONDS
    last = None
    while time.monotonic() < deadline:
        try:
            answer = ready()
            if answer:
                return answer
        except Exception as error:
            last = error
        time.sleep(1)
    raise TimeoutError(f"no {what} in {PATIENCE_SECONDS} s: {last}")


def connected(session, sites):
    return set(sites) <= {client.name for client in session.get_system_info().client_info}


def export_job(folder, model, rounds, sites):
    """Scatter and gather needs one answer, and waits a moment for others, so a job survives the loss of a client."""
    job = FedJob(name="rounds", min_clients=1)
    job.to_server(
        ScatterAndGather(
            min_clients=1,
            num_rounds=rounds,
            wait_time_after_min_received=GATHER_SECONDS,
            aggregator_id="aggregator",
            persistor_id="persistor",
            shareable_generator_id="shareable_generator",
        )
    )
    job.to_server(NPModelPersistor(source_ckpt_file_full_name=model), id="persistor")
    job.to_server(FullModelShareableGenerator(), id="shareable_generator")
    job.to_server(InTimeAccumulateWeightedAggregator(expected_data_kind="WEIGHTS"), id="aggregator")
    job.to_clients(ScriptRunner(TRAINER, " ".join(sites), launch_external_process=True, framework=FrameworkType.NUMPY))
    job.export_job(folder)
    return os.path.join(folder, "rounds")


def main(kit, model, rounds, *sites):
    login = {"username": "operator@flarena.test", "startup_kit_location": kit, "timeout": 10.0}
    with tempfile.TemporaryDirectory() as folder:
        job_folder = export_job(folder, model, int(rounds), sites)
        session = wait_for("session", lambda: new_secure_session(**login))
        with contextlib.closing(session):
            wait_for("sites " + " ".join(sites), lambda: connected(session, sites))
            job = session.submit_job(job_folder)
            print("submitted", job, flush=True)
            session.monitor_job(job, timeout=PATIENCE_SECONDS, poll_interval=1.0)
            status = session.get_job_status(job)
    print("ended", status, flush=True)
    return 0 if status.startswith("FINISHED:") else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
