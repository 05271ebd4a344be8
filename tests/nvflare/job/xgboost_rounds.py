"""NVFlare's own runner of histogram-based XGBoost trains 20 rounds with the real XGBoost, without a job around it.

The writer of the metrics keeps 12 MB per round.
"""

import tempfile
import types

import numpy as np
from nvflare.app_common.tracking.log_writer import LogWriter
from nvflare.app_opt.xgboost.histogram_based_v2.runners import xgb_client_runner

ROUNDS = 20


class Writer(LogWriter):
    def __init__(self):
        self.kept = []

    def get_writer_name(self):
        return None

    def get_default_metric_data_type(self):
        return None

    def write(self, tag, value, data_type, **kwargs):  # for the training and for the validation data
        self.kept.append(bytearray(6 << 20))


runner = xgb_client_runner.XGBClientRunner(data_loader_id="loader", model_file_name="model.json")
runner._client_name, runner._rank = "site-1", 0
runner._metrics_writer = Writer()
workspace = types.SimpleNamespace(get_app_custom_dir=lambda job: tempfile.gettempdir())
runner.fl_ctx = types.SimpleNamespace(get_prop=lambda name: workspace)
xgb = xgb_client_runner.xgb
rows = np.random.default_rng(1).normal(size=(200, 4))
data = xgb.DMatrix(rows, label=rows[:, 0] > 0)
parameters = {"objective": "binary:logistic", "eval_metric": "auc", "nthread": 1}
booster = runner._xgb_train(ROUNDS, parameters, {}, data, data)
assert type(booster) is xgb.Booster and booster.num_boosted_rounds() == ROUNDS
