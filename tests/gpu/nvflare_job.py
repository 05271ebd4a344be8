"""nvflare_job.py ROUNDS FOLDER: FedAvg in NVFlare's simulator with two sites, whose trainers use the GPU.

`nvflare_job.py --train FOLDER` is the trainer of a site. It writes a checksum of each model that it receives and sends.
"""

import hashlib
import os
import shlex
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # the same sums in each run
SITES = ("site-1", "site-2")


def server(rounds, folder):
    from nvflare.app_common.workflows.fedavg import FedAvg
    from nvflare.job_config.api import FedJob
    from nvflare.job_config.script_runner import FrameworkType, ScriptRunner

    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    job = FedJob(name="gpu", min_clients=len(SITES))
    job.to_server(FedAvg(num_clients=len(SITES), num_rounds=rounds, model={}))
    for site in SITES:
        trainer = ScriptRunner(
            script=os.path.basename(__file__),
            script_args=f"--train {folder}",
            launch_external_process=True,
            command=shlex.join([sys.executable, "-u"]),
            framework=FrameworkType.NUMPY,
        )
        job.to(trainer, site)
    sys.exit(job.simulator_run(os.path.join(folder, "workspace"), threads=len(SITES)))


def checksum(params):
    digest = hashlib.sha256()
    for name in sorted(params):
        digest.update(params[name].tobytes())
    return digest.hexdigest()[:16]


def trainer(folder):
    import nvflare.client as flare
    import torch
    from torch import nn

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
        generator = torch.Generator().manual_seed(received.current_round * 10 + SITES.index(site))
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


if sys.argv[1] == "--train":
    trainer(sys.argv[2])
else:
    server(int(sys.argv[1]), sys.argv[2])
