"""The same models in every workflow, whatever the hooks drop: a job whose server writes a hash of each global model.

same_models.py KIND FOLDER   runs it in NVFlare's simulator in the workspace FOLDER; the hashes are in `said` beside it
    known    FedAvg, ScatterAndGather, FedAvg again, cyclic and cross-site evaluation, one after the other
    custom   a controller of the program, which reads the global model, the last result and its peer at the end
    swarm    Swarm: the first client aggregates
    torch    FedAvg with PyTorch's tensors, then FedOpt
    large    FedAvg with a model of 32 MB, whose server also writes how many models it holds while the clients train
"""

import hashlib
import os
import sys
import threading
import time
from pathlib import Path

import flarena
import numpy
from nvflare.apis.fl_component import FLComponent
from nvflare.app_common.abstract.model import make_model_learnable
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import InTimeAccumulateWeightedAggregator
from nvflare.app_common.ccwf.ccwf_job import CCWFJob, SwarmClientConfig, SwarmServerConfig
from nvflare.app_common.ccwf.comps.np_file_model_persistor import NPFileModelPersistor
from nvflare.app_common.ccwf.comps.simple_model_shareable_generator import SimpleModelShareableGenerator
from nvflare.app_common.np.np_model_persistor import NPModelPersistor
from nvflare.app_common.np.np_trainer import NPTrainer
from nvflare.app_common.np.np_validator import NPValidator
from nvflare.app_common.shareablegenerators.full_model_shareable_generator import FullModelShareableGenerator
from nvflare.app_common.workflows.cross_site_model_eval import CrossSiteModelEval
from nvflare.app_common.workflows.cyclic_ctl import CyclicController
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.job_config.api import FedJob

CLIENTS, ROUNDS = 2, 3
LARGE = 32 << 20


def say(*words):
    """Appends a line to the file that SAID names. In the log, lines of several threads and processes can be mixed."""
    with open(os.environ["SAID"], "a") as file:
        file.write(" ".join(map(str, words)) + "\n")


def digest(weights):
    content = hashlib.sha256()
    for name in sorted(weights):
        content.update(name.encode() + numpy.ascontiguousarray(weights[name]).tobytes())
    return content.hexdigest()[:16]


class Hashes(FLComponent):
    """Writes the hash of the global model at some events."""

    def handle_event(self, event_type, fl_ctx):
        if event_type in ("_after_shareable_to_learnable", "_round_started", "_end_workflow", "_end_run"):
            model = fl_ctx.get_prop("global_model")
            site, number = fl_ctx.get_identity_name(), fl_ctx.get_prop("current_round")
            say("MODEL", site, event_type, number, None if model is None else digest(model["weights"]))


class ReadsAtTheEnd(FedAvg):
    def run(self):
        super().run()
        model, result = self.fl_ctx.get_prop("global_model"), self.fl_ctx.get_prop("__task_result__")
        sent = self.fl_ctx.get_peer_context().get_prop("__shareable__")
        say("MODEL custom", digest(model["weights"]), len(result) > 1, result is sent)


class LargeModel(NPModelPersistor):
    def load_model(self, fl_ctx):
        return make_model_learnable({"numpy_key": numpy.ones(LARGE // 8)}, {})


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


class WaitsForServer(NPTrainer):
    """Trains when the server has measured its memory."""

    def __init__(self, folder):
        super().__init__(sleep_time=0)
        self.folder, self.round = folder, 0

    def _train(self, shareable, fl_ctx, abort_signal):
        Path(self.folder, f"trains-{self.round}-{fl_ctx.get_identity_name()}").touch()
        wait_for(Path(self.folder, f"measured-{self.round}"))
        self.round += 1
        return super()._train(shareable, fl_ctx, abort_signal)


class Holds(FLComponent):
    """Writes how many models the server holds while all clients train."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def handle_event(self, event_type, fl_ctx):
        if event_type == "_start_run":
            threading.Thread(target=self.measure, args=[flarena.stats()["live_bytes"]], daemon=True).start()

    def measure(self, before):
        for number in range(ROUNDS):
            for client in range(CLIENTS):
                wait_for(Path(self.folder, f"trains-{number}-site-{client + 1}"))
            deadline = time.monotonic() + 10
            # The last buffers of messages are freed a moment later.
            while (held := (flarena.stats()["live_bytes"] - before) / LARGE) > 2.1 and time.monotonic() < deadline:
                time.sleep(0.1)
            say("HOLDS", number, held)
            Path(self.folder, f"measured-{number}").touch()


def large_job(folder):
    job = FedJob(name="job", min_clients=CLIENTS)
    job.to_server(LargeModel(), id="persistor")
    job.to_server(Holds(folder), id="holds")
    job.to_server(FedAvg(num_clients=CLIENTS, num_rounds=ROUNDS, persistor_id="persistor"))
    job.to_clients(WaitsForServer(folder), tasks=["train"])
    return job


def numpy_job(kind):
    job = FedJob(name="job", min_clients=CLIENTS)
    job.to_server(NPModelPersistor(), id="persistor")
    job.to_server(FullModelShareableGenerator(), id="shareable_generator")
    job.to_server(aggregator(), id="aggregator")
    job.to_server(Hashes(), id="hashes")
    fedavg = {"num_clients": CLIENTS, "num_rounds": ROUNDS, "persistor_id": "persistor"}
    if kind == "custom":
        job.to_server(ReadsAtTheEnd(**fedavg))
    else:
        job.to_server(FedAvg(**fedavg))
        ids = {f"{part}_id": part for part in ("persistor", "shareable_generator", "aggregator")}
        job.to_server(ScatterAndGather(min_clients=CLIENTS, num_rounds=ROUNDS, wait_time_after_min_received=0, **ids))
        job.to_server(FedAvg(**fedavg))
        job.to_server(CyclicController(num_rounds=ROUNDS, task_assignment_timeout=60, order="FIXED"))
        job.to_server(CrossSiteModelEval(submit_model_task_name="submit_model"))
    job.to_clients(NPTrainer(sleep_time=0), tasks=["train", "submit_model"])
    job.to_clients(NPValidator(sleep_time=0), tasks=["validate"])
    return job


def aggregator(kind="WEIGHTS"):
    return InTimeAccumulateWeightedAggregator(expected_data_kind=kind)


def swarm_job():
    job = CCWFJob(name="job", min_clients=CLIENTS)
    parts = {"persistor": NPFileModelPersistor(), "shareable_generator": SimpleModelShareableGenerator()}
    parts |= {"executor": NPTrainer(sleep_time=0), "aggregator": aggregator()}
    client = SwarmClientConfig(min_responses_required=CLIENTS, **parts)
    first = {"aggr_clients": ["site-1"], "starting_client": "site-1"}
    job.add_swarm(SwarmServerConfig(num_rounds=ROUNDS, min_clients=CLIENTS, **first), client)
    job.to_clients(Hashes(), id="hashes")
    return job


def torch_job():
    import torch_models
    from nvflare.app_opt.pt.fedopt import PTFedOptModelShareableGenerator
    from nvflare.app_opt.pt.file_model_persistor import PTFileModelPersistor

    job = FedJob(name="job", min_clients=CLIENTS)
    job.to_server(torch_models.Net(), id="model")
    job.to_server(PTFileModelPersistor(model="model", allow_numpy_conversion=False), id="tensors")
    job.to_server(PTFileModelPersistor(model="model", global_model_file_name="arrays.pt"), id="persistor")
    optimizer = {"path": "torch.optim.SGD", "args": {"lr": 0.5}, "config_type": "dict"}
    job.to_server(PTFedOptModelShareableGenerator(optimizer, source_model="model"), id="shareable_generator")
    job.to_server(aggregator("WEIGHT_DIFF"), id="aggregator")
    job.to_server(Hashes(), id="hashes")
    job.to_server(FedAvg(num_clients=CLIENTS, num_rounds=ROUNDS, persistor_id="tensors"))
    ids = {f"{part}_id": part for part in ("persistor", "shareable_generator", "aggregator")}
    job.to_server(ScatterAndGather(min_clients=CLIENTS, num_rounds=ROUNDS, wait_time_after_min_received=0, **ids))
    job.to_clients(torch_models.Trainer(), tasks=["train"])
    return job


def main(kind, folder):
    os.environ["SAID"] = os.path.join(os.path.dirname(folder), "said")
    say("FLARENA_GC", os.environ["FLARENA_GC"])
    jobs = {"swarm": swarm_job, "torch": torch_job, "large": lambda: large_job(os.path.dirname(folder))}
    job = jobs.get(kind, lambda: numpy_job(kind))()
    job.simulator_run(folder, n_clients=CLIENTS, threads=CLIENTS)


if __name__ == "__main__":
    main(*sys.argv[1:])
