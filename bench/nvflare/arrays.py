"""The server's model of the benchmark job: a dictionary of arrays from an .npz file; nothing is saved at the end."""

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

            weights = {name: torch.from_numpy(array) for name, array in weights.items()}
        return make_model_learnable(weights=weights, meta_props={})

    def save_model(self, model, fl_ctx):
        pass
