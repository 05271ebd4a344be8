"""The hook for OpenFL: its list of callbacks, which the aggregator and each collaborator call at rounds and tasks.

The methods are OpenFL's documented interface for callbacks. The wrappers call the originals with the same arguments
and pass results and exceptions on.
"""

from __future__ import annotations

import functools

from ._marking import emit, guarded, number_or_none, stage_hook, text_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._marking import Stage
    from ._native import Shim

_AGGREGATOR = "aggregator"
# Method -> the position of the round in its arguments, and the stages of the aggregator and of a collaborator. OpenFL
# calls the methods of tasks in collaborators only. `on_round_end` comes after the aggregation and after the sending.
_STAGES: dict[str, tuple[int, Stage | None, Stage | None]] = {
    "on_round_begin": (0, "round_started", None),
    "on_task_begin": (1, None, "before_task"),
    "on_task_end": (1, None, "after_task"),
    "on_round_end": (0, "after_aggregation", "after_send_result"),
}


@stage_hook
def hook_callback_list(shim: Shim, module: Any) -> None:
    for name in _STAGES:
        setattr(module.CallbackList, name, _marked(shim, name, getattr(module.CallbackList, name)))


def _marked(shim: Shim, name: str, method: Any) -> Any:
    @functools.wraps(method)
    def marked_method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        _mark(shim, name, self, args, kwargs)
        return result

    return marked_method


@guarded
def _mark(shim: Shim, name: str, callbacks: Any, args: Any, kwargs: Any) -> None:
    position, of_aggregator, of_collaborator = _STAGES[name]
    site = text_or_none((callbacks.params or {}).get("origin"))
    stage = of_aggregator if site == _AGGREGATOR else of_collaborator
    round = args[position] if len(args) > position else kwargs.get("round_num")
    if stage is not None:
        emit(shim, stage, site, number_or_none(round))
