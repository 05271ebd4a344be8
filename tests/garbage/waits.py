"""waits.py: the stages of the fake NVFlare after which a process waits return the recycler's cache at once.

Prints the cached MB right after each stage, rounded down to tens.
"""

import flarena
import nvflare.client.api as client
from nvflare.apis.utils import event
from stages import Context

MB = 1 << 20


def cached_after(stage):
    block = bytearray(64 * MB)
    del block
    stage()
    return flarena.stats()["recycler"]["cached_bytes"] // MB // 10 * 10


def fire(name):
    event.fire_event_to_components(name, [], Context(1))


client.receive()
results = [
    cached_after(lambda: client.send(None)),
    cached_after(lambda: fire("_after_send_task_result")),
    cached_after(lambda: fire("_after_aggregation")),
]
print(*results)
