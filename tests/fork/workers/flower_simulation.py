"""Flower's simulation: in each round two workers of Ray train four clients and evaluate the model."""

import os
import time
from typing import ClassVar

import numpy
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation

import shared

SITES, WORKERS = 4, 2


class Client(NumPyClient):
    def fit(self, parameters, config):
        shared.work(config["round"])
        return [array + 1 for array in parameters], 1, {"pid": os.getpid()}

    def evaluate(self, parameters, config):
        shared.work(config["round"])
        return float(parameters[0].sum()), 1, {"pid": os.getpid()}


def metrics_of(results):
    Strategy.pids.update(metrics["pid"] for _, metrics in results)
    return {}


class Strategy(FedAvg):
    pids: ClassVar[set] = set()

    def aggregate_evaluate(self, server_round, results, failures):
        assert len(results) == SITES and not failures
        result = super().aggregate_evaluate(server_round, results, failures)
        if server_round == shared.ROUNDS:
            time.sleep(5)
            print(sum(shared.own_pss_mb(pid) for pid in [os.getpid(), *self.pids]), flush=True)
        return result


def client_fn(_context):
    return Client().to_client()


def server_fn(_context):
    strategy = Strategy(
        initial_parameters=ndarrays_to_parameters([numpy.zeros(1 << 20, dtype=numpy.float32)]),
        min_available_clients=SITES,
        on_fit_config_fn=lambda number: {"round": number},
        on_evaluate_config_fn=lambda number: {"round": number},
        fit_metrics_aggregation_fn=metrics_of,
    )
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=shared.ROUNDS))


if __name__ == "__main__":
    run_simulation(
        server_app=ServerApp(server_fn=server_fn),
        client_app=ClientApp(client_fn=client_fn),
        num_supernodes=SITES,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": WORKERS}},
    )
