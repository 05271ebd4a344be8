"""Runs four Ray tasks on two actors, and prints the actors' memory when they are idle."""

import os

import ray
import task


@ray.remote
class Trainer:
    def pid(self):
        return os.getpid()

    def work(self, seed):
        return task.work(seed)


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20, log_to_driver=False)
trainers = [Trainer.remote() for _ in range(2)]
workers = task.Workers("Ray", ray.get([trainer.pid.remote() for trainer in trainers]))
ray.get([trainer.work.remote(seed) for seed in range(2) for trainer in trainers])
workers.show()
