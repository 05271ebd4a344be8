"""NVFLARE_CLIENT_MEMORY_GC_ROUNDS=2: a cleanup after each second result of a trainer and of a client's job.

Not where NVFlare cleans up for the same result, and once where the trainer runs in the client's job.
"""

import gc
import os
import sys
import types

import markers
from contexts import ClientContext
from nvflare.apis.utils import event
from nvflare.client.api import receive, send
from nvflare.fuel.utils.memory_utils import cleanup_memory

collections = 0


def count(phase, info):
    global collections
    collections += phase == "stop" and info["generation"] == 2


def after(*steps):
    """The full collections of each step."""
    counts = []
    for step in steps:
        before = collections
        step()
        counts.append(collections - before)
    return counts


def send_result():
    send(receive())


def send_result_cleaned_by_nvflare():
    gc.collect()
    cleanup_memory()
    send(receive())


def task(train):
    client = ClientContext()
    event.fire_event_to_components("_before_task_execution", [], client)
    train()
    event.fire_event_to_components("_after_task_execution", [], client)
    event.fire_event_to_components("_after_send_task_result", [], client)


def nothing():
    pass


cuda = types.SimpleNamespace(emptied=0, initialized=False)
cuda.is_initialized = lambda: cuda.initialized
cuda.empty_cache = lambda: setattr(cuda, "emptied", cuda.emptied + 1)

gc.disable()
gc.collect()
gc.callbacks.append(count)
if os.environ["NVFLARE_CLIENT_MEMORY_GC_ROUNDS"] == "0":
    assert after(send_result, send_result, lambda: task(nothing)) == [0, 0, 0]
    raise SystemExit

assert after(send_result, send_result, send_result) == [0, 1, 0]
assert after(send_result_cleaned_by_nvflare, send_result, send_result) == [1, 0, 1]  # the 1 is NVFlare's
sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
assert after(lambda: task(nothing), lambda: task(nothing), lambda: task(send_result)) == [0, 1, 0]
assert cuda.emptied == 0, "CUDA was not initialized"
cuda.initialized = True
assert after(lambda: task(send_result), lambda: task(send_result)) == [1, 0]
assert cuda.emptied == 1

trims = [marker["stage"] for marker in markers.own(os.environ["FLARENA_MARKER_FILE"]) if "trim" in marker["stage"]]
# The fake's cleanup is marked, too.
assert trims == ["before_trim", "after_trim"] * 5, trims
