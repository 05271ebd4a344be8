"""A Flower simulation: two clients with fit and evaluate, two rounds. Nothing here knows flarena."""

import sys

import numpy as np
import task
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import ndarrays_to_parameters
from flwr.server import ServerApp, ServerAppComponents, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.simulation import run_simulation

SITES = 2


class Client(NumPyClient):
    def fit(self, parameters, config):
        task.work(seed=1)
        return [p + 1 for p in parameters], 1, {}

    def evaluate(self, parameters, config):
        return float(parameters[0].sum()), 1, {}


def client_fn(context):
    return Client().to_client()


def server_fn(context):
    initial = ndarrays_to_parameters([np.zeros(1 << 20, dtype=np.float32)])
    strategy = FedAvg(initial_parameters=initial, min_available_clients=SITES)
    return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=int(sys.argv[1])))


if __name__ == "__main__":
    run_simulation(
        server_app=ServerApp(server_fn=server_fn),
        client_app=ClientApp(client_fn=client_fn),
        num_supernodes=SITES,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": SITES}},
    )
