"""train.py ROUNDS: trains a small network on the GPU, as a trainer of NVFlare does. Prints a checksum of its weights.

Each round: worker processes load the data into pinned memory, the model trains, and its weights are copied to new
blocks of the host, saved, and loaded again as the next round's model.
"""

import hashlib
import io
import os
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # the same sums in each run
import flarena
import torch
from torch import nn


class Shards(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(256, 2048, generator=generator), torch.randn(256, 64, generator=generator)


def main(rounds):
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 2048), nn.ReLU(), nn.Linear(2048, 64)
    ).cuda()
    for number in range(rounds):
        optimizer = torch.optim.Adam(model.parameters())
        loader = torch.utils.data.DataLoader(Shards(), batch_size=4, num_workers=4, pin_memory=True)
        for inputs, targets in loader:
            inputs, targets = (
                inputs.cuda(non_blocking=True).flatten(0, 1),
                targets.cuda(non_blocking=True).flatten(0, 1),
            )
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
        flarena.mark("trained", round=number)
        file = io.BytesIO()
        torch.save({name: value.cpu() for name, value in model.state_dict().items()}, file)
        state = torch.load(io.BytesIO(file.getvalue()))
        model.load_state_dict(state)
        flarena.mark("sent", round=number)
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.cpu().numpy().tobytes())
    print("weights", digest.hexdigest())


main(int(sys.argv[1]))
