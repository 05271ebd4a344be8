"""Ray: three actors read one table from the object store and work in rounds."""

import os
import time

import ray

import shared


@ray.remote
class Worker:
    def __init__(self, table):
        self.table = table

    def round(self, number):
        return shared.work(number), os.getpid()


def main():
    ray.init(num_cpus=3, include_dashboard=False, logging_level="error", log_to_driver=False)
    table = ray.put(shared.table())
    workers = [Worker.remote(table) for _ in range(3)]
    for number in range(shared.ROUNDS):
        pids = [pid for _, pid in ray.get([worker.round.remote(number) for worker in workers])]
        shared.work(number)
    time.sleep(5)
    print(sum(shared.own_pss_mb(pid) for pid in [os.getpid(), *pids]), flush=True)
    ray.shutdown()


main()
