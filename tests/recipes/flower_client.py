"""Sends messages to both forms of Flower's ClientApp as a ServerApp does."""

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.client import NumPyClient
from flwr.clientapp import ClientApp
from flwr.common import EvaluateIns, FitIns, Parameters
from flwr.compat.common.recorddict_compat import evaluateins_to_recorddict, fitins_to_recorddict
from flwr.supercore.task_identity import TaskIdentity


class Client(NumPyClient):
    def fit(self, parameters, config):
        return parameters, 1, {}

    def evaluate(self, parameters, config):
        return 0.5, 1, {}


functions = ClientApp()


@functions.train()
def train(message, context):
    return Message(message.content, reply_to=message)


def context(**node_config):
    return Context(run_id=1, node_id=77, node_config=node_config, state=RecordDict(), run_config={})


def main():
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # as in a process of Flower
    methods = ClientApp(client_fn=lambda context: Client().to_client())
    none = Parameters(tensors=[], tensor_type="numpy.ndarray")
    fit = Message(fitins_to_recorddict(FitIns(none, {}), True), dst_node_id=77, message_type="train", group_id="3")
    evaluate = evaluateins_to_recorddict(EvaluateIns(none, {}), True)
    evaluate = Message(evaluate, dst_node_id=77, message_type="evaluate", group_id="3")
    records = RecordDict({"arrays": ArrayRecord(), "config": ConfigRecord({"server-round": 4})})
    for app, message, where in (
        (methods, fit, context(**{"partition-id": 1})),
        (methods, evaluate, context(**{"partition-id": 1})),
        (functions, Message(records, dst_node_id=77, message_type="train"), context()),
    ):
        assert app(message, where).has_content()


main()
