"""Rounds of a server job that drops cycles with blocks, through the hooked events of the fake NVFlare."""

import rounds
from contexts import ServerContext
from nvflare.apis.utils import event


class Context(ServerContext):
    def __init__(self, number):
        self.number = number

    def get_prop(self, name, default=None):
        return self.number if name == "current_round" else default


if __name__ == "__main__":
    rounds.freeze_start()

    def stage(number):
        event.fire_event_to_components("_round_started", [], Context(number))

    rounds.report(rounds.shape(rounds.highest_of(30, stage)))
