"""The server's model of the benchmark job: arrays or tensors by name from an .npz file; nothing is saved at the end."""

import numpy
from nvflare.app_common.abstract.model import make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor


class ArraysPersistor(ModelPersistor):
    def __init__(self, path, tensors=False):
        super().__init__()
        self.path, self.tensors = path, tensors

    def load_model(self, fl_ctx):
        with numpy.load(self.path) as arrays:
            weights = {name: arrays[name] for name in arrays.files}
        if self.tensors:
            import torch
            from nvflare.app_opt.pt.decomposers import TensorDecomposer
            from nvflare.fuel.utils import fobs

            fobs.register(TensorDecomposer)  # as NVFlare's own persistor of PyTorch models does
            weights = {name: torch.from_numpy(array) for name, array in weights.items()}
            share_offload(fl_ctx.get_engine().server)
        return make_model_learnable(weights=weights, meta_props={})

    def save_model(self, model, fl_ctx):
        pass


def share_offload(server):
    """Turns disk offload on for the cell that receives. NVFlare 2.9.0 turns it on for `run_manager.cell`, which in the
    simulator is the server's, while results come to the job's: there it would do nothing. In POC both are one cell."""
    settings = server.cell.get_fobs_context().items()
    server.job_cell.update_fobs_context({name: value for name, value in settings if "disk_offload" in name})
