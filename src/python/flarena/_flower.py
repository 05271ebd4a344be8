"""The hook for Flower: a wrapper around `ClientApp.__call__`, which hands a client its message.

Every kind of client passes there: a NumPyClient's `fit` and `evaluate`, functions registered by `train()`
and `evaluate()`, workers of a simulation, and processes of a SuperNode. The wrapper calls the original
with the same arguments and passes its result and exceptions on.
"""

from __future__ import annotations

import functools

from ._marking import emit, guarded, number_or_none, shim_for_stages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._marking import Stage
    from ._native import Shim

# Category of a message -> the stages before and after it. The type "train.warm_up" has category "train".
_STAGES: dict[str, tuple[Stage, Stage]] = {
    "train": ("before_train", "after_train"),
    "evaluate": ("before_evaluate", "after_evaluate"),
}


def hook_client_app(module: Any) -> None:
    shim = shim_for_stages()
    client_app = module.ClientApp
    # Flower has moved this module. The old name may re-export the class, which is then hooked at its new one.
    if shim is None or client_app.__module__ != module.__name__:
        return
    call = client_app.__call__

    @functools.wraps(call)
    def marked_call(self: Any, message: Any, context: Any) -> Any:
        place = _place_of(message, context)
        _mark(shim, place, 0)
        reply = call(self, message, context)
        _mark(shim, place, 1)
        return reply

    client_app.__call__ = marked_call


@guarded
def _place_of(message: Any, context: Any) -> tuple[tuple[Stage, Stage], str, int | None] | None:
    """Stages, site and round of a message, or None for a message that neither trains nor evaluates."""
    stages = _STAGES.get(message.metadata.message_type.partition(".")[0])
    return stages and (stages, _site_of(context), _round_of(message))


@guarded
def _mark(shim: Shim, place: Any, which: int) -> None:
    if place is not None:
        stages, site, round = place
        emit(shim, stages[which], site, round)


def _site_of(context: Any) -> str:
    """The client's data partition if it has one: node ids of a simulation change from run to run."""
    part = context.node_config.get("partition-id")
    return f"node-{context.node_id}" if part is None else f"client-{part}"


def _round_of(message: Any) -> int | None:
    """The message's group, where a ServerApp writes the round, or the strategy's "server-round" record."""
    group = number_or_none(message.metadata.group_id)
    if group is not None or not message.has_content():
        return group
    rounds = (record.get("server-round") for record in message.content.config_records.values())
    return number_or_none(next((round for round in rounds if round is not None), None))
