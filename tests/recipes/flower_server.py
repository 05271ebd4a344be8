"""Runs the rounds of both forms of Flower's ServerApp, with clients that answer at once."""

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.common import Code, EvaluateRes, FitRes, GetParametersRes, Status, ndarrays_to_parameters
from flwr.server import ServerConfig
from flwr.server.client_manager import SimpleClientManager
from flwr.server.client_proxy import ClientProxy
from flwr.server.server import Server
from flwr.server.strategy import FedAvg as FedAvgOfServer
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

ROUNDS, CLIENTS = 2, 2
PARAMETERS = ndarrays_to_parameters([np.zeros(4)])
OK = Status(Code.OK, "")


class Grid:
    """Answers each message with its arrays, and with one metric."""

    def get_node_ids(self):
        return range(1, CLIENTS + 1)

    def send_and_receive(self, messages, timeout):
        for message in messages:
            content = RecordDict({"metrics": MetricRecord({"num-examples": 1})})
            if message.metadata.message_type == "train":
                content["arrays"] = message.content["arrays"]
            yield Message(content, reply_to=message)


class Client(ClientProxy):
    def get_properties(self, ins, timeout, group_id):
        raise NotImplementedError

    def get_parameters(self, ins, timeout, group_id):
        return GetParametersRes(OK, PARAMETERS)

    def fit(self, ins, timeout, group_id):
        return FitRes(OK, ins.parameters, 1, {})

    def evaluate(self, ins, timeout, group_id):
        return EvaluateRes(OK, 0.5, 1, {})

    def reconnect(self, ins, timeout, group_id):
        raise NotImplementedError


class OwnFedAvg(FedAvg):
    """Overrides the method that is marked."""

    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, list(replies))


def main():
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # as in a process of Flower
    result = OwnFedAvg().start(grid=Grid(), initial_arrays=ArrayRecord([np.zeros(4)]), num_rounds=ROUNDS)
    assert len(result.evaluate_metrics_clientapp) == ROUNDS
    manager = SimpleClientManager()
    for number in range(CLIENTS):
        manager.register(Client(str(number)))
    server = Server(client_manager=manager, strategy=FedAvgOfServer())
    history, _ = server.fit(ServerConfig(num_rounds=ROUNDS).num_rounds, timeout=None)
    assert len(history.losses_distributed) == ROUNDS


main()
