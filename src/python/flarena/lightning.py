"""A callback for PyTorch Lightning: a memory marker at each stage of training.

    from flarena.lightning import MemoryMarkers

    trainer = Trainer(callbacks=[MemoryMarkers()])

Needs `lightning` or `pytorch_lightning`. Works without the library, and then marks nothing.
"""

from __future__ import annotations

import sys

from ._api import mark, metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    class Callback: ...

elif "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback


class MemoryMarkers(Callback):
    """Marks each epoch of training and each validation. The epoch is the round of the marker.

    site  the site of the markers, such as a rank; None: unknown
    log   also give `flarena.metrics()` to Lightning's loggers at the end of each epoch

    The checks before the training (`num_sanity_val_steps`) are not marked.
    """

    def __init__(self, site: str | None = None, log: bool = False) -> None:
        super().__init__()
        self._site = site
        self._log = log

    def _mark(self, stage: str, trainer: Any) -> None:
        if not trainer.sanity_checking:
            mark(stage, self._site, trainer.current_epoch)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._mark("before_train", trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self._mark("after_train", trainer)
        if self._log:
            for logger in trainer.loggers:
                logger.log_metrics(metrics(), step=trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._mark("before_evaluate", trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self._mark("after_evaluate", trainer)
