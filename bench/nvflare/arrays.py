"""Persistor of the benchmark job: loads named arrays or tensors from an .npz file, and saves nothing."""

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

            fobs.register(TensorDecomposer)  # as NVFlare's persistor of PyTorch models does
            weights = {name: torch.from_numpy(array) for name, array in weights.items()}
            enable_offload_in_job_cell(fl_ctx.get_engine().server)
        return make_model_learnable(weights=weights, meta_props={})

    def save_model(self, model, fl_ctx):
        pass


def enable_offload_in_job_cell(server):
    """Copies the disk offload settings to the cell that receives results.

    NVFlare 2.9.0 sets them in `run_manager.cell`. In the simulator that is the server's cell, but results arrive at the
    job's. In POC mode both are one cell.
    """
    settings = server.cell.get_fobs_context().items()
    server.job_cell.update_fobs_context({name: value for name, value in settings if "disk_offload" in name})
