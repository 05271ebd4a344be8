"""Holds memory in three ways, then waits: a module's list, a cycle, a function's variable."""

import gc
import sys
import time

gc.disable()
CACHE = []


class Task:
    def __init__(self):
        self.client_tasks, self.data = [], None


class ClientTask:
    def __init__(self, task):
        self.task = task


def cache():
    CACHE.append(b"x" * (40 << 20))


def garbage():
    task = Task()
    task.data = {"params": {"weights": b"x" * (20 << 20)}}
    task.client_tasks.append(ClientTask(task))


def wait():
    model = b"x" * (10 << 20)
    print("ready", flush=True)
    for _ in range(600):
        time.sleep(0.05)
    return model


if __name__ == "__main__":
    cache()
    garbage()
    if sys.argv[1:] == ["wait"]:
        wait()
    else:
        import json

        import flarena
        from flarena import _sites

        model = b"x" * (10 << 20)
        numbers = [one["site"] for one in json.loads(_sites.request("who"))["sites"]]
        for number in numbers[:2]:
            print(*flarena.holders(number))
        CACHE.clear()
        gc.collect()
        left = json.loads(_sites.request("who"))["sites"]
        print([one["blocks"] for one in left], len(model) >> 20)
