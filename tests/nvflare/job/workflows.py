"""A job of workflows whose server announces no rounds: cyclic, cross-site evaluation, and cyclic by the clients (CCWF).

workflows.py simulate FOLDER   runs it in NVFlare's simulator, with its workspace in FOLDER
workflows.py verify MARKERS    checks the server's markers: one for each result in the round of its task, or counted
                               for each client, and the rounds that clients report
"""

import collections
import json
import sys

ROUNDS = 2
CLIENTS = 2


def simulate(folder):
    from nvflare.app_common.ccwf import CyclicClientController, CyclicServerController
    from nvflare.app_common.np.np_model_persistor import NPModelPersistor
    from nvflare.app_common.np.np_trainer import NPTrainer
    from nvflare.app_common.np.np_validator import NPValidator
    from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
    from nvflare.app_common.workflows.cross_site_model_eval import CrossSiteModelEval
    from nvflare.app_common.workflows.cyclic_ctl import CyclicController
    from nvflare.job_config.api import FedJob

    job = FedJob(name="job", min_clients=CLIENTS)
    for to in (job.to_server, job.to_clients):
        to(NPModelPersistor(), id="persistor")
        to(FullModelShareableGenerator(), id="shareable_generator")
    job.to_server(CyclicController(num_rounds=ROUNDS, task_assignment_timeout=60))
    job.to_server(CrossSiteModelEval(submit_model_task_name="submit_model"))
    job.to_server(CyclicServerController(num_rounds=ROUNDS, start_task_timeout=60))
    job.to_clients(NPTrainer(sleep_time=0), tasks=["train", "submit_model"])
    job.to_clients(NPValidator(sleep_time=0), tasks=["validate"])
    patience = {"learn_task_ack_timeout": 60, "final_result_ack_timeout": 60}
    job.to_clients(CyclicClientController(**patience), tasks=["cyclic_*"])
    job.simulator_run(folder, n_clients=CLIENTS, threads=CLIENTS)


def verify(path):
    with open(path, encoding="utf-8") as lines:
        markers = [json.loads(line) for line in lines]
    server = [(m["stage"], m["round"]) for m in markers if m["site"] == "server"]
    processed = collections.Counter(round for stage, round in server if stage == "result_processed")
    # Each client trains once in each of the cyclic workflow's rounds, and evaluates each client's model. Round 0 also
    # has each client's model, and the answers to the configuration and the start of the last workflow.
    assert processed == {0: 2 * CLIENTS + 2 * CLIENTS + 1, 1: 2 * CLIENTS}, processed
    # A client reports with its next request. A short round may have passed until then.
    started = [round for stage, round in server if stage == "round_started"]
    assert started in ([0, 1], [1]), started


if __name__ == "__main__":
    {"simulate": simulate, "verify": verify}[sys.argv[1]](sys.argv[2])
