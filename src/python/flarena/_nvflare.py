"""The hooks for NVFlare: wrappers around four places that every job passes, in every version from 2.7 on.

- `nvflare.client.api.receive` and `send`: a trainer gets and gives a model, in-process or as an external process.
- `fire_event_to_components`: the events of the job processes (server and client): rounds, aggregation, tasks.
- `memory_utils.cleanup_memory`: the cleanup at the end of a round, which does not purge jemalloc.
- `TxTask.stop`: the end of a message, which a reference cycle would keep (docs/nvflare-memory.md).

NVFLARE_CLIENT_MEMORY_GC_ROUNDS=N, or the number of a recipe's executor, adds a cleanup after the result of each N-th
round: in a trainer when send() has returned, in a client's job when the result is on its way to the server.

Each wrapper calls the original with the same arguments and passes its result and exceptions on. The added
code is guarded: an error in it writes one line to stderr and has no other effect.
"""

from __future__ import annotations

import functools
import os
import weakref

from . import _cleanup, _collector, _live, _workflows
from ._marking import (
    emit,
    guarded,
    mark,
    mark_at_last_place,
    mark_in_signal_handler,
    number_or_none,
    release_before,
    stage_hook,
    text_or_none,
)
from ._native import contained
from ._native import shim as find_shim
from ._settings import collections_wanted, markers_wanted
from ._sigterm import MarkOnSigterm

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from ._marking import Stage
    from ._native import Shim

    Position = Literal["before", "after"]

# FedAvg of 2.7 fires no _after_aggregation. The event before it saves the model ends its aggregation.
_SAVING = "_before_save_model"

# Event -> its stage, and where its marker comes: before or after the event's handlers.
_STAGE_OF_EVENT: dict[str, tuple[Stage, Position]] = {
    "_start_run": ("start_run", "after"),
    "_end_run": ("end_run", "after"),
    "_round_started": ("round_started", "before"),
    "_before_aggregation": ("before_aggregation", "before"),
    "_after_aggregation": ("after_aggregation", "after"),
    _SAVING: ("after_aggregation", "before"),
    "_before_task_execution": ("before_task", "before"),
    "_after_task_execution": ("after_task", "after"),
    "_after_send_task_result": ("after_send_result", "after"),
    "_before_train": ("before_train", "before"),
    "_after_train": ("after_train", "after"),
    _workflows.RESULT_PROCESSED: ("result_processed", "after"),
    _workflows.TASK_REQUESTED: ("round_started", "before"),
}
# The server uses the old model and the results until both are over. A collection finds little, and its time is missed
# at the next round, where the old model is garbage.
_BEFORE_UPDATE = ("_before_aggregation", "_after_aggregation")
_OUTSIDE_ROUNDS = ("start_run", "end_run")
# NVFlare drops the task's data before these events. They take the round of the site's last task.
_AFTER_TASK = ("after_task", "after_send_result")


class _Task:
    """The task that a client API object received last.

    The reference to its model is weak, so that the program can free the model.
    """

    def __init__(self, model: Any, site: str | None, round: int | None) -> None:
        self.model = weakref.ref(model)
        self.site = site
        self.round = round


_tasks: weakref.WeakKeyDictionary[Any, _Task] = weakref.WeakKeyDictionary()
_round_of_site: dict[str | None, int | None] = {}
_aggregating: set[str | None] = set()
_workflow = _workflows.Workflow()
# True in a client's job from the start of a task until its result is sent.
_has_task = False
_has_marked_cache = False


@functools.cache
def _cleanup_by_variable() -> _cleanup.ResultCleanup | None:
    shim = find_shim()
    return None if shim is None else _cleanup.result_cleanup(shim)


_cleanup_by_executor: _cleanup.ResultCleanup | None = None


def _result_cleanup() -> _cleanup.ResultCleanup | None:
    return _cleanup_by_variable() or _cleanup_by_executor


@guarded
def _note_executor(shim: Shim, components: Any) -> None:
    global _cleanup_by_executor
    if _result_cleanup() is None:
        _cleanup_by_executor = _cleanup.result_cleanup(shim, _cleanup.rounds_of_executor(components))


@guarded
def _result_sent() -> None:
    cleanup = _result_cleanup()
    if cleanup is not None:
        cleanup.result_sent()


# The client API


@stage_hook
def hook_client_api(shim: Shim, module: Any) -> None:
    receive, send = module.receive, module.send

    @functools.wraps(receive)
    def marked_receive(*args: Any, **kwargs: Any) -> Any:
        model = receive(*args, **kwargs)
        if model is not None:
            _received(shim, module, _argument("ctx", 1, args, kwargs), model)
        return model

    @functools.wraps(send)
    def marked_send(*args: Any, **kwargs: Any) -> Any:
        keeps_models = _argument("clear_cache", 1, args, kwargs) is False
        sending = _about_to_send(shim, module, _argument("ctx", 2, args, kwargs), keeps_models)
        try:
            result = send(*args, **kwargs)
        except BaseException:
            _stop_sending(sending)
            raise
        _sent(sending)
        return result

    module.receive, module.send = marked_receive, marked_send


def _argument(name: str, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


@guarded
def _received(shim: Shim, module: Any, ctx: Any, model: Any) -> None:
    shim.note_trainer()
    api = module.get_context(ctx).api
    shim.note_job(text_or_none(contained(lambda: api.get_job_id())))
    last = _tasks.get(api)
    if last is not None and last.model() is model:
        return  # until send(), receive() returns the same model again: mark the first time only
    task = _Task(model, text_or_none(api.get_site_name()), number_or_none(model.current_round))
    _tasks[api] = task
    emit(shim, "receive", task.site, task.round)


class _Sending:
    """A send() in progress. Its marker comes when it returns, or from the SIGTERM that ends the process in it."""

    def __init__(self, shim: Shim, task: _Task) -> None:
        self._shim, self._task = shim, task
        self.on_sigterm = MarkOnSigterm(self._interrupted)

    def ended(self) -> None:
        self.on_sigterm.disarm()
        if _has_task:  # the client's job sends the result later
            _collector.safe_point()
        else:
            release_before(self._shim, "send")
        mark(self._shim, "send", self._task.site, self._task.round)

    @guarded
    def _interrupted(self) -> None:
        mark_in_signal_handler(self._shim, "send", self._task.site, self._task.round)


@guarded
def _about_to_send(shim: Shim, module: Any, ctx: Any, keeps_models: bool) -> _Sending | None:
    global _has_marked_cache
    # send() drops the model in a rank that is not in control, and after the API was closed.
    api = module.get_context(ctx).api
    task = _tasks.get(api)
    if task is None or getattr(api, "closed", False) is True or getattr(api, "_closed", False) is True:
        return None
    if keeps_models and not _has_marked_cache:
        _has_marked_cache = True
        emit(shim, "cache_kept", task.site, task.round)
    emit(shim, "before_send", task.site, task.round)
    sending = _Sending(shim, task)
    if markers_wanted(os.environ):
        sending.on_sigterm.arm()
    return sending


@guarded
def _stop_sending(sending: _Sending | None) -> None:
    if sending is not None:
        sending.on_sigterm.disarm()


@guarded
def _sent(sending: _Sending | None) -> None:
    if sending is not None:
        if not _has_task:  # else the trainer runs in the client's job, which sends the result later
            _result_sent()
        sending.ended()


# Events


@stage_hook
def hook_events(shim: Shim, module: Any) -> None:
    fire = module.fire_event_to_components
    drops = collections_wanted(os.environ)

    @functools.wraps(fire)
    def marked_fire(*args: Any, **kwargs: Any) -> Any:
        event = _argument("event", 0, args, kwargs)
        event = str.__str__(event) if issubclass(type(event), str) else None
        if event == _workflows.START:
            _workflow.start()
        found = None if event is None else _STAGE_OF_EVENT.get(event)
        components, ctx = _argument("components", 1, args, kwargs), _argument("ctx", 2, args, kwargs)
        if drops:
            _live.refresh_models(ctx)
        if found is None:
            return fire(*args, **kwargs)
        stage, position = found
        if stage == "before_task":
            _note_executor(shim, components)
        if position == "before":
            _at_event(shim, event, stage, ctx)
        result = fire(*args, **kwargs)
        if position == "after":
            _at_event(shim, event, stage, ctx)
            if drops and event == _workflows.RESULT_PROCESSED:
                _live.drop_result(ctx, components)
        return result

    module.fire_event_to_components = marked_fire


@guarded
def _at_event(shim: Shim, event: str, stage: Stage, ctx: Any) -> None:
    global _has_task
    site = _site_of(ctx)
    if event in (_workflows.RESULT_PROCESSED, _workflows.TASK_REQUESTED):
        is_result = event == _workflows.RESULT_PROCESSED
        round = _workflow.round_of_result(ctx) if is_result else _workflow.round_of_report(ctx)
        if round is not None:
            emit(shim, stage, site, round)
        return
    if stage == "before_task":
        _has_task = True
    elif stage == "after_send_result":
        _has_task = False
        _result_sent()
    if stage == "before_aggregation":
        _aggregating.add(site)
    elif stage == "after_aggregation":
        if event == _SAVING and site not in _aggregating:
            return
        _aggregating.discard(site)
    if stage == "round_started":
        _workflow.note_round()
    round = None
    if stage in _AFTER_TASK:
        round = _round_of_site.get(site)
    elif stage not in _OUTSIDE_ROUNDS:
        round = _round_of(ctx)
        _round_of_site[site] = round
    emit(shim, stage, site, round, collects=event not in _BEFORE_UPDATE)


def _site_of(ctx: Any) -> str | None:
    """The client's name, or "server": the server's two processes call themselves after the project."""
    if (text_or_none(ctx.get_process_type()) or "").startswith("S"):
        return "server"
    return text_or_none(ctx.get_identity_name())


def _round_of(ctx: Any) -> int | None:
    """The round of an event: in the headers of a client's task data, or in the server's context."""
    task_data = ctx.get_prop("__task_data__", None)
    headers = task_data.get("__headers__") if isinstance(task_data, dict) else None
    round = headers.get("current_round") if isinstance(headers, dict) else None
    return number_or_none(ctx.get_prop("current_round", None) if round is None else round)


# Streams


def hook_byte_streamer(module: Any) -> None:
    """Break the cycle of a stream that has stopped and its future: it holds the message until a full collection."""
    if find_shim() is None or not collections_wanted(os.environ):
        return
    stop = module.TxTask.stop

    @functools.wraps(stop)
    def stop_and_break_cycle(task: Any, *args: Any, **kwargs: Any) -> Any:
        result = stop(task, *args, **kwargs)
        _break_cycle(task)
        return result

    module.TxTask.stop = stop_and_break_cycle


@guarded
def _break_cycle(task: Any) -> None:
    # The future uses its task only to cancel it, and a stopped task ignores that.
    if task.stopped is True and task.stream_future is not None:
        task.stream_future.task_handle = None


# Cleanup


def hook_cleanup(module: Any) -> None:
    shim = find_shim()
    if shim is None:
        return
    _collector.watch()  # so that the cleanup's own collections are counted
    purges = shim.allocator() == "jemalloc"
    marks = markers_wanted(os.environ) and not purges
    _cleanup_by_variable()  # here, where an error has no effect on NVFlare's cleanup
    cleanup = module.cleanup_memory

    @functools.wraps(cleanup)
    def hooked_cleanup(*args: Any, **kwargs: Any) -> Any:
        # NVFlare's cleanup calls glibc's own malloc_trim, so the library does not mark it.
        if marks:
            mark_at_last_place(shim, "before_trim")
        result = cleanup(*args, **kwargs)
        if purges:
            _purge(shim)  # the library marks before_trim and after_trim
        if marks:
            mark_at_last_place(shim, "after_trim")
        own_cleanup = _result_cleanup()
        if own_cleanup is not None:
            own_cleanup.note_cleanup_of_nvflare()
        return result

    module.cleanup_memory = hooked_cleanup


@guarded
def _purge(shim: Shim) -> None:
    shim.trim()
