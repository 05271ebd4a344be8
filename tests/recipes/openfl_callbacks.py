"""Runs a collaborator of OpenFL with its own task runner, and ends a round of an aggregator."""

from openfl.callbacks import CallbackList, LambdaCallback
from openfl.component.collaborator import Collaborator

ROUNDS = 2
seen = []


class Client:
    """Hands out one task for each round."""

    def __init__(self):
        self.round = 0

    def get_tasks(self):
        self.round += 1
        return ["train"], self.round - 1, 0, self.round > ROUNDS

    def send_local_task_results(self, *results):
        pass


class Runner:
    def set_optimizer_treatment(self, treatment):
        pass

    def get_required_tensorkeys_for_function(self, function, **kwargs):
        return []

    def train(self, col_name, round_num, input_tensor_dict):
        return {}, {}

    def get_train_data_size(self):
        return 1


def main():
    collaborator = Collaborator(
        collaborator_name="one",
        aggregator_uuid="aggregator",
        federation_uuid="federation",
        client=Client(),
        task_runner=Runner(),
        task_config={"train": {"function": "train", "kwargs": {}}},
        callbacks=[LambdaCallback(on_round_end=lambda round_num, logs: seen.append(round_num))],
    )
    collaborator.run()
    assert seen == list(range(ROUNDS)), seen
    callbacks = CallbackList([], origin="aggregator")
    callbacks.on_round_begin(0)
    callbacks.on_round_end(0, {})


main()
