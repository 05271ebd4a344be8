"""A model of PyTorch and its trainer, for same_models.py. FedAvg sends tensors, FedOpt arrays."""

import torch
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.executor import Executor
from nvflare.app_opt.pt.decomposers import TensorDecomposer
from nvflare.fuel.utils import fobs

fobs.register(TensorDecomposer)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(8, 8)


class Trainer(Executor):
    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        weights = from_shareable(shareable).data
        factor = 1 + int(fl_ctx.get_identity_name()[-1]) / 8
        if isinstance(next(iter(weights.values())), torch.Tensor):
            kind, data = DataKind.WEIGHTS, {name: value * factor for name, value in weights.items()}
        else:
            kind, data = DataKind.WEIGHT_DIFF, {name: value * (factor - 1) for name, value in weights.items()}
        return DXO(kind, data=data, meta={"NUM_STEPS_CURRENT_ROUND": 1}).to_shareable()
