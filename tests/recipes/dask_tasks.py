"""Dask: four tasks on two worker processes, and the workers' memory when they wait again."""

import os

import task
from distributed import Client


def main():
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None) as client:
        workers = task.Workers("Dask", client.run(os.getpid).values())
        client.gather(client.map(task.work, range(4)))
        workers.show()


if __name__ == "__main__":  # the workers import this file
    main()
