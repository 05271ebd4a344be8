"""Rounds of PyTorch on the CPU: batches of many sizes pass a network, and only the losses are kept.

torch_rounds.py SECONDS     prints the MB resident after a first small batch, at the peak, after the rounds, and then
                            when idle, for which it waits at most so long
"""

import sys

import memory
import torch

BATCHES, ROUNDS, MARGIN = (32, 192, 64, 288, 96, 224, 48, 256), 3, 30

torch.manual_seed(1)
torch.set_num_threads(2)
network = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 8 * 8, 10),
)
losses = []


def step(batch):
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    loss = torch.nn.functional.cross_entropy(network(images), labels)
    loss.backward()
    losses.append(loss.detach())


step(1)
base = memory.resident()
for number in range(ROUNDS * len(BATCHES)):
    step(BATCHES[number % len(BATCHES)])
line = {
    "base": base,
    "peak": memory.peak(),
    "held": memory.resident(),
    "idle": memory.idle(base + MARGIN, float(sys.argv[1])),
}
memory.show(line)
