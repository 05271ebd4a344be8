"""A callback for the Trainer of Hugging Face: a memory marker at each stage of training.

    from flarena.transformers import MemoryMarkers

    trainer = Trainer(..., callbacks=[MemoryMarkers()])

Needs `transformers`. Works without the library, and then marks nothing.
"""

from __future__ import annotations

from ._api import mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    class TrainerCallback: ...

else:
    from transformers import TrainerCallback


class MemoryMarkers(TrainerCallback):
    """Marks each epoch of training, each evaluation and each checkpoint. The epoch is the round of the marker.

    site  the site of the markers, such as a rank; None: unknown
    """

    def __init__(self, site: str | None = None) -> None:
        self._site = site

    def _mark(self, stage: str, state: Any, ended: bool = False) -> None:
        # `state.epoch` is a fraction that has reached the next whole number at the end of an epoch.
        epoch = int(round(state.epoch or 0, 6))
        mark(stage, self._site, max(epoch - 1, 0) if ended else epoch)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._mark("before_train", state)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._mark("after_train", state, ended=True)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._mark("after_evaluate", state, ended=True)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._mark("saved", state, ended=True)
