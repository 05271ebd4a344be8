from types import SimpleNamespace


class TrainingCallback:
    pass


def train(params, rounds, callbacks):
    for round in range(rounds):
        for callback in callbacks:
            assert isinstance(callback, TrainingCallback) and callback.after_iteration(None, round, {}) is False
    return params, len(callbacks)


xgb = SimpleNamespace(train=train, callback=SimpleNamespace(TrainingCallback=TrainingCallback), other="other")


class XGBClientRunner:
    _client_name = "site-3"

    def _xgb_train(self, rounds):
        return xgb.train("params", rounds, callbacks=[TrainingCallbackOfRunner()]), xgb.other


class TrainingCallbackOfRunner(TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        return False
