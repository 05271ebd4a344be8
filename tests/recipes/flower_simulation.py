"""Runs a Flower simulation of two clients with fit and evaluate, and prints the workers' memory before the first round
and after the last.

flower_simulation.py ROUNDS
"""

import os
import sys
from typing import ClassVar

import numpy as np
import task
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation

SITES, ROUNDS = 2, int(sys.argv[1])


class Client(NumPyClient):
    def fit(self, parameters, config):
        pid = os.getpid()
        (before_mb,) = task.Workers("Flower", [pid]).before
        task.work(seed=1)
        return [p + 1 for p in parameters], 1, {"pid": pid, "before_mb": before_mb}

    def evaluate(self, parameters, config):
        return float(parameters[0].sum()), 1, {}


class PrintsMemory(FedAvg):
    """Each worker reports its memory before its first round; the table is printed after the last one."""

    before: ClassVar[dict] = {}

    def aggregate_fit(self, server_round, results, failures):
        for _, result in results:
            self.before.setdefault(result.metrics["pid"], result.metrics["before_mb"])
        return super().aggregate_fit(server_round, results, failures)

    def aggregate_evaluate(self, server_round, results, failures):
        if server_round == ROUNDS:
            workers = task.Workers("Flower", self.before)
            workers.before = [self.before[pid] for pid in workers.pids]
            workers.show()
        return super().aggregate_evaluate(server_round, results, failures)


def client_fn(context):
    return Client().to_client()


def server_fn(context):
    initial = ndarrays_to_parameters([np.zeros(1 << 20, dtype=np.float32)])
    strategy = PrintsMemory(initial_parameters=initial, min_available_clients=SITES)
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=ROUNDS))


if __name__ == "__main__":
    run_simulation(
        server_app=ServerApp(server_fn=server_fn),
        client_app=ClientApp(client_fn=client_fn),
        num_supernodes=SITES,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": SITES}},
    )
