"""PyTorch's DataLoader: forked workers inherit the dataset and make batches in each epoch."""

import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

import shared


class Rows(Dataset):
    def __init__(self):
        self.rows = shared.table()

    def __len__(self):
        return 60

    def __getitem__(self, index):
        shared.work(index)
        return torch.full((1 << 18,), float(self.rows[index]["id"]))


def main():
    loader = DataLoader(Rows(), batch_size=5, num_workers=3, persistent_workers=True, multiprocessing_context="fork")
    for epoch in range(3):
        for batch in loader:
            assert batch.shape == (5, 1 << 18)
        shared.work(epoch)
    time.sleep(5)
    print(shared.pss_mb(os.getpid()), flush=True)
    os._exit(0)


main()
