"""nvflare_trainer.py FOLDER: the trainer of a site of scripts/quickstart/job.py, which uses the GPU.

It writes a checksum of each model that it receives and sends to FOLDER.
"""

import hashlib
import os
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # the same sums in each run
import nvflare.client as flare
import torch
from torch import nn


def checksum(params):
    digest = hashlib.sha256()
    for name in sorted(params):
        digest.update(params[name].tobytes())
    return digest.hexdigest()[:16]


def trainer(folder):
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 64)
    ).cuda()
    flare.init()
    site = flare.get_site_name()
    while flare.is_running():
        received = flare.receive()
        if received is None:
            break
        if received.params:
            model.load_state_dict({name: torch.from_numpy(value) for name, value in received.params.items()})
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
        generator = torch.Generator().manual_seed(received.current_round * 10 + int(site[-1]) - 1)
        for _ in range(40):
            inputs = torch.randn(2048, 1024, generator=generator).pin_memory().cuda(non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            nn.functional.mse_loss(model(inputs), inputs[:, :64]).backward()
            optimizer.step()
        params = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
        with open(os.path.join(folder, f"{site}.txt"), "a") as file:
            print(received.current_round, checksum(received.params or {}), checksum(params), file=file)
        flare.send(flare.FLModel(params=params))
        del received, params


trainer(sys.argv[1])
