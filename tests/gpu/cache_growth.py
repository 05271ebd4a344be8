"""Each round holds one tensor more for a time, so that PyTorch's cache grows while no tensor is left at the marker."""

import flarena
import torch

MB = 1 << 20

for number in range(24):
    tensors = [torch.empty(12 * MB, dtype=torch.uint8, device="cuda") for _ in range(number + 1)]
    del tensors
    flarena.mark("send", round=number)
