"""The hooks for Flower.

- `ClientApp.__call__` hands a client its message. Every kind of client passes there: a NumPyClient's `fit` and
  `evaluate`, functions registered by `train()` and `evaluate()`, workers of a simulation, processes of a SuperNode.
- `Strategy.start` runs the rounds of a ServerApp, and `Server.fit_round` those of a ServerApp with `server_fn`.

The wrappers call the originals with the same arguments and pass results and exceptions on.
"""

from __future__ import annotations

import functools

from ._marking import emit, guarded, number_or_none, stage_hook

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


# The server


@stage_hook
def hook_strategy(shim: Shim, module: Any) -> None:
    start = module.Strategy.start

    @functools.wraps(start)
    def marked_start(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A strategy overrides these methods, so they are wrapped in the object, while its rounds run.
        wrapped = _wrap_methods(shim, self)
        try:
            return start(self, *args, **kwargs)
        finally:
            for name in wrapped or ():
                vars(self).pop(name, None)

    module.Strategy.start = marked_start


@guarded
def _wrap_methods(shim: Shim, strategy: Any) -> list[str] | None:
    if "aggregate_train" in vars(strategy):
        return None  # `start` of a subclass has called that of its parent
    configure, aggregate = strategy.configure_train, strategy.aggregate_train

    @functools.wraps(configure)
    def marked_configure(*args: Any, **kwargs: Any) -> Any:
        _mark_round(shim, "round_started", args, kwargs)
        return configure(*args, **kwargs)

    @functools.wraps(aggregate)
    def marked_aggregate(*args: Any, **kwargs: Any) -> Any:
        _mark_round(shim, "before_aggregation", args, kwargs)
        result = aggregate(*args, **kwargs)
        _mark_round(shim, "after_aggregation", args, kwargs)
        return result

    vars(strategy).update(configure_train=marked_configure, aggregate_train=marked_aggregate)
    return ["configure_train", "aggregate_train"]


@stage_hook
def hook_server(shim: Shim, module: Any) -> None:
    fit_round, fit_clients = module.Server.fit_round, module.fit_clients

    @functools.wraps(fit_round)
    def marked_round(self: Any, *args: Any, **kwargs: Any) -> Any:
        _mark_round(shim, "round_started", args, kwargs)
        result = fit_round(self, *args, **kwargs)
        if result is not None:  # None: no clients were selected
            _mark_round(shim, "after_aggregation", args, kwargs)
        return result

    @functools.wraps(fit_clients)
    def marked_clients(*args: Any, **kwargs: Any) -> Any:
        results = fit_clients(*args, **kwargs)
        _mark_round(shim, "before_aggregation", args[3:], kwargs)
        return results

    module.Server.fit_round, module.fit_clients = marked_round, marked_clients


@guarded
def _mark_round(shim: Shim, stage: Stage, args: Any, kwargs: Any) -> None:
    """Mark with the round that is the first argument, or has a name."""
    named = (kwargs[name] for name in ("server_round", "group_id") if name in kwargs)
    emit(shim, stage, "server", number_or_none(args[0] if args else next(named, None)))


# The client


@stage_hook
def hook_client_app(shim: Shim, module: Any) -> None:
    client_app = module.ClientApp
    # Flower has moved this module. The old name may re-export the class, which is then hooked at its new one.
    if client_app.__module__ != module.__name__:
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
