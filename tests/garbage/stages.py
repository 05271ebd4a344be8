"""stages.py CASE: stages of the fake NVFlare collect garbage and return the recycler's cache. Prints one line."""

import sys

import flarena
import rounds
from contexts import ServerContext
from nvflare.apis.utils import event


class Context(ServerContext):
    def __init__(self, number):
        self.number = number

    def get_prop(self, name, default=None):
        return self.number if name == "current_round" else default


def fire(name, number=1):
    event.fire_event_to_components(name, [], Context(number))


def tens_of_mb(size):
    """MB, rounded down to tens."""
    return size // rounds.MB // 10 * 10


def server():
    """Rounds of a server job that drops cycles with blocks."""
    rounds.freeze_start()
    rounds.report(rounds.shape(rounds.highest_of(30, lambda number: fire("_round_started", number))))


class Task:
    def __init__(self):
        self.model, self.task = bytearray(64 * rounds.MB), self


def aggregation():
    """The old model is garbage from the update on. Prints its MB after each event of the server."""
    rounds.freeze_start()
    before, left = rounds.live(), []
    Task()
    for name in ("_before_aggregation", "_after_aggregation", "_round_started"):
        fire(name)
        left.append(tens_of_mb(rounds.live() - before))
    print(*left)


def cached_after(stage):
    block = bytearray(64 * rounds.MB)
    del block
    stage()
    return tens_of_mb(flarena.stats()["recycler"]["cached_bytes"])


def waits():
    """Stages after which a process waits return the cache at once. Prints the cached MB right after each."""
    from nvflare.client import api

    api.receive()
    stages = (lambda: api.send(None), lambda: fire("_after_send_task_result"), lambda: fire("_after_aggregation"))
    print(*map(cached_after, stages))


globals()[sys.argv[1]]()
