"""The old model is garbage from the update on. Prints its MB, rounded down to tens, after each event of the server."""

import flarena
from nvflare.apis.utils import event
from stages import Context

MB = 1 << 20


class Task:
    def __init__(self):
        self.model, self.task = bytearray(64 * MB), self


def live_bytes():
    return flarena.stats()["recycler"]["live_bytes"]


before = live_bytes()
Task()
for name in ("_before_aggregation", "_after_aggregation", "_round_started"):
    event.fire_event_to_components(name, [], Context(1))
    print((live_bytes() - before) // MB // 10 * 10, end=" ")
