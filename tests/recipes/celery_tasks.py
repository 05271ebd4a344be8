"""Runs eight Celery tasks on two workers of the prefork pool, and prints the workers' memory when they are idle.

celery_tasks.py SCRATCH     messages are files in this folder
"""

import os
import subprocess
import sys
import time

import task
from celery import Celery

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.environ.setdefault("CELERY_FOLDER", os.path.join(sys.argv[1], "celery"))
DONE = os.path.join(FOLDER, "done")
os.makedirs(DONE, exist_ok=True)
app = Celery("celery_tasks", broker="filesystem://")
app.conf.update(
    broker_transport_options={"data_folder_in": FOLDER, "data_folder_out": FOLDER, "control_folder": FOLDER},
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
)


@app.task
def work(seed):
    task.work(seed)
    with open(os.path.join(DONE, str(seed)), "w"):
        pass


def main():
    celery = os.path.join(os.path.dirname(sys.executable), "celery")
    command = [celery, "-A", "celery_tasks", "worker", "-c", "2", "--without-mingle", "--without-gossip"]
    pool = subprocess.Popen(command, cwd=HERE)
    try:
        while len(task.children(pool.pid)) < 2:
            time.sleep(0.5)
        time.sleep(2)
        workers = task.Workers("celery", task.children(pool.pid))
        for seed in range(8):
            work.delay(seed)
        while len(os.listdir(DONE)) < 8:
            time.sleep(0.5)
        workers.show()
    finally:
        pool.terminate()
        pool.wait()


if __name__ == "__main__":
    main()
