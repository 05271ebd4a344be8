"""The hook for NVFlare's histogram-based XGBoost, where one task contains all rounds of boosting.

NVFlare's runner calls `xgb.train` of its module. The module gets a copy of the name `xgb` whose `train` adds one
callback: it marks the end of each round. All other attributes are XGBoost's.
"""

from __future__ import annotations

import functools

from ._marking import emit, guarded, number_or_none, stage_hook, text_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._native import Shim


@stage_hook
def hook_client_runner(shim: Shim, module: Any) -> None:
    train_of_runner = module.XGBClientRunner._xgb_train
    xgboost = MarkedXgboost(shim, module.xgb)

    @functools.wraps(train_of_runner)
    def train_at_site(self: Any, *args: Any, **kwargs: Any) -> Any:
        xgboost.site = text_or_none(getattr(self, "_client_name", None))
        return train_of_runner(self, *args, **kwargs)

    module.XGBClientRunner._xgb_train = train_at_site
    module.xgb = xgboost


class MarkedXgboost:
    """The module xgboost, with markers in `train`."""

    def __init__(self, shim: Shim, real: Any) -> None:
        self._shim, self._real = shim, real
        self.site: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def train(self, *args: Any, callbacks: Any = None, **kwargs: Any) -> Any:
        marks = self._callback()
        if marks is not None:
            callbacks = [*(callbacks or ()), marks]
        return self._real.train(*args, callbacks=callbacks, **kwargs)

    @guarded
    def _callback(self) -> Any:
        shim, site = self._shim, self.site

        @guarded
        def mark_round(round: Any) -> None:
            emit(shim, "boosted", site, number_or_none(round))

        # XGBoost accepts instances of its own class only.
        class RoundMarks(self._real.callback.TrainingCallback):  # type: ignore[misc,name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                mark_round(epoch)
                return False  # continue

        return RoundMarks()
