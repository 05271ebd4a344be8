"""Runs four Dask tasks on two worker processes, and prints the workers' memory when they are idle."""

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
