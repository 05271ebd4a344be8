"""Persistor of the benchmark job: loads named arrays from an .npz file, and saves nothing."""

import numpy
from nvflare.app_common.abstract.model import make_model_learnable
from nvflare.app_common.abstract.model_persistor import ModelPersistor


class ArraysPersistor(ModelPersistor):
    def __init__(self, path):
        super().__init__()
        self.path = path

    def load_model(self, fl_ctx):
        with numpy.load(self.path) as arrays:
            weights = {name: arrays[name] for name in arrays.files}
        return make_model_learnable(weights=weights, meta_props={})

    def save_model(self, model, fl_ctx):
        pass
