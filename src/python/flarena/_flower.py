"""The hook of Flower: one wrapper around the call that hands a client its message, in every client of Flower's.

Whatever the client is (a NumPyClient's `fit` and `evaluate`, or functions registered by `train()` and
`evaluate()`), and whether a simulation's worker or a process of a SuperNode runs it, `ClientApp.__call__`
is what runs it. The user's code is not touched.
"""

from __future__ import annotations

import functools

from ._marking import emit, guarded, staging_shim
from ._place import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._marking import Stage
    from ._native import Shim

# Kind of message, without its action ("train.warm_up" is a "train") -> the stages before and after it.
_STAGES: dict[str, tuple[Stage, Stage]] = {
    "train": ("before_train", "after_train"),
    "evaluate": ("before_evaluate", "after_evaluate"),
}


def hook_client_app(module: Any) -> None:
    shim = staging_shim()
    client_app = module.ClientApp
    # The module has moved: where the old name only hands on the class of the new, that one has the hook.
    if shim is None or client_app.__module__ != module.__name__:
        return
    call = client_app.__call__

    @functools.wraps(call)
    def marked_call(self: Any, message: Any, context: Any) -> Any:
        place = _place(message, context)
        _mark(shim, place, 0)
        reply = call(self, message, context)
        _mark(shim, place, 1)
        return reply

    client_app.__call__ = marked_call


@guarded
def _place(message: Any, context: Any) -> tuple[tuple[Stage, Stage], str, int | None] | None:
    """Stages, site and round of a message; None for one that is no work on a model."""
    stages = _STAGES.get(message.metadata.message_type.partition(".")[0])
    return stages and (stages, _site_of(context), _round_of(message))


@guarded
def _mark(shim: Shim, place: Any, which: int) -> None:
    if place is not None:
        stages, site, round = place
        emit(shim, stages[which], site, round)


def _site_of(context: Any) -> str:
    """By the number of its part of the data: a simulation's node has another name in each run."""
    part = context.node_config.get("partition-id")
    return f"node-{context.node_id}" if part is None else f"client-{part}"


def _round_of(message: Any) -> int | None:
    """A ServerApp groups its messages by round, or its strategy says the round in the configuration."""
    group = number(message.metadata.group_id)
    if group is not None or not message.has_content():
        return group
    rounds = (record.get("server-round") for record in message.content.config_records.values())
    return number(next((round for round in rounds if round is not None), None))
