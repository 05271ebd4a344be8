"""Two workers of a torch DataLoader decode large records; their memory is printed when they are idle."""

import multiprocessing

import task
import torch
from torch.utils.data import DataLoader, Dataset

WORKERS = 2


class Records(Dataset):
    def __getitem__(self, index):
        return torch.tensor(0.0 if index < 0 else task.work(index))


def main():
    order = [-1] * WORKERS  # the first epoch only starts the workers
    loader = DataLoader(Records(), sampler=order, batch_size=None, num_workers=WORKERS, persistent_workers=True)
    list(loader)
    workers = task.Workers("DataLoader", [worker.pid for worker in multiprocessing.active_children()])
    order[:] = range(2 * WORKERS)
    list(loader)
    workers.show()


main()
