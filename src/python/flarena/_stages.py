"""The hooks: wrappers around three places of NVFlare that every job passes, in every version since 2.7.

- `nvflare.client.api.receive/send`: where a trainer gets and gives a model, in-process or external.
- `fire_event_to_components`: the events of the job processes (SJ, CJ): rounds, aggregation, tasks.
- `memory_utils.cleanup_memory`: the end-of-round cleanup, which leaves jemalloc alone by itself.

A wrapper calls what it wraps first and last, with the same arguments, and lets its exceptions pass. Our
own part runs guarded: whatever goes wrong there is swallowed after one line.
"""

from __future__ import annotations

import functools
import os
import weakref

from . import _collector
from ._log import markers_wanted
from ._marking import emit, guarded, mark, mark_here, staging_shim
from ._native import shim as find_shim
from ._place import number, round_of, site_of, text
from ._termination import LastWord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._marking import Stage
    from ._native import Shim

# 2.7's FedAvg fires no _after_aggregation: there the aggregation is over when the model is about to be saved.
_SAVING = "_before_save_model"

# event -> (stage, marked before its handlers run: True, or after them: False)
_STAGE_OF_EVENT: dict[str, tuple[Stage, bool]] = {
    "_start_run": ("start_run", False),
    "_end_run": ("end_run", False),
    "_round_started": ("round_started", True),
    "_before_aggregation": ("before_aggregation", True),
    "_after_aggregation": ("after_aggregation", False),
    _SAVING: ("after_aggregation", True),
    "_before_task_execution": ("before_task", True),
    "_after_task_execution": ("after_task", False),
    "_after_send_task_result": ("after_send_result", False),
    "_before_train": ("before_train", True),
    "_after_train": ("after_train", False),
}
_OUTSIDE_ROUNDS = ("start_run", "end_run")
# NVFlare drops the task's data before these events: they belong to the round of the site's last task.
_AFTER_TASK = ("after_task", "after_send_result")


class _Task:
    """What one client API object last received: the model (weakly: it is the user's to free) and its place."""

    def __init__(self, model: Any, site: str | None, round: int | None) -> None:
        self.model = weakref.ref(model)
        self.site = site
        self.round = round


_tasks: weakref.WeakKeyDictionary[Any, _Task] = weakref.WeakKeyDictionary()
_round_of_site: dict[str | None, int | None] = {}
_aggregating: set[str | None] = set()


# receive and send


def hook_client_api(module: Any) -> None:
    shim = staging_shim()
    if shim is None:
        return
    receive, send = module.receive, module.send

    @functools.wraps(receive)
    def marked_receive(*args: Any, **kwargs: Any) -> Any:
        model = receive(*args, **kwargs)
        if model is not None:
            _received(shim, module, _argument("ctx", 1, args, kwargs), model)
        return model

    @functools.wraps(send)
    def marked_send(*args: Any, **kwargs: Any) -> Any:
        sending = _about_to_send(shim, module, _argument("ctx", 2, args, kwargs))
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
    api = module.get_context(ctx).api
    last = _tasks.get(api)
    if last is not None and last.model() is model:
        return  # receive() repeats the model of the current task until send(): one receipt, one marker
    task = _Task(model, text(api.get_site_name()), number(model.current_round))
    _tasks[api] = task
    emit(shim, "receive", task.site, task.round)


class _Sending:
    """One send() under way; it is marked once, by its return or by the signal that ends the process in it."""

    def __init__(self, shim: Shim, task: _Task) -> None:
        self._shim, self._task = shim, task
        self.last_word = LastWord(self.mark_sent)

    @guarded
    def mark_sent(self) -> None:  # also from a signal handler: no safe point
        mark(self._shim, "send", self._task.site, self._task.round)


@guarded
def _about_to_send(shim: Shim, module: Any, ctx: Any) -> _Sending | None:
    # A rank that is not in control, or a closed API, drops the model without sending it.
    api = module.get_context(ctx).api
    task = _tasks.get(api)
    if task is None or getattr(api, "closed", False) is True or getattr(api, "_closed", False) is True:
        return None
    emit(shim, "before_send", task.site, task.round)
    sending = _Sending(shim, task)
    if markers_wanted(os.environ):
        sending.last_word.arm()
    return sending


@guarded
def _stop_sending(sending: _Sending | None) -> None:
    if sending is not None:
        sending.last_word.disarm()


@guarded
def _sent(sending: _Sending | None) -> None:
    if sending is not None:
        sending.last_word.disarm()
        _collector.safe_point()
        sending.mark_sent()


# events


def hook_events(module: Any) -> None:
    shim = staging_shim()
    if shim is None:
        return
    fire = module.fire_event_to_components

    @functools.wraps(fire)
    def marked_fire(*args: Any, **kwargs: Any) -> Any:
        event = _argument("event", 0, args, kwargs)
        stage, on_entry = _STAGE_OF_EVENT.get(event, (None, False)) if isinstance(event, str) else (None, False)
        if stage is None:
            return fire(*args, **kwargs)
        ctx = _argument("ctx", 2, args, kwargs)
        if on_entry:
            _at_event(shim, event, stage, ctx)
        result = fire(*args, **kwargs)
        if not on_entry:
            _at_event(shim, event, stage, ctx)
        return result

    module.fire_event_to_components = marked_fire


@guarded
def _at_event(shim: Shim, event: str, stage: Stage, ctx: Any) -> None:
    site = site_of(ctx)
    if stage == "before_aggregation":
        _aggregating.add(site)
    elif stage == "after_aggregation":
        if event == _SAVING and site not in _aggregating:
            return
        _aggregating.discard(site)
    round = None
    if stage in _AFTER_TASK:
        round = _round_of_site.get(site)
    elif stage not in _OUTSIDE_ROUNDS:
        round = round_of(ctx)
        _round_of_site[site] = round
    emit(shim, stage, site, round)


# cleanup


def hook_cleanup(module: Any) -> None:
    shim = find_shim()
    if shim is None:
        return
    _collector.watch()  # it collects: that counts
    cleanup = module.cleanup_memory

    @functools.wraps(cleanup)
    def purging_cleanup(*args: Any, **kwargs: Any) -> Any:
        result = cleanup(*args, **kwargs)
        _purge(shim)  # marks before and after by itself
        return result

    @functools.wraps(cleanup)
    def marked_cleanup(*args: Any, **kwargs: Any) -> Any:
        mark_here(shim, "before_trim")
        result = cleanup(*args, **kwargs)  # calls glibc's malloc_trim, behind the library's back
        mark_here(shim, "after_trim")
        return result

    if shim.allocator() == "jemalloc":
        module.cleanup_memory = purging_cleanup
    elif markers_wanted(os.environ):
        module.cleanup_memory = marked_cleanup


@guarded
def _purge(shim: Shim) -> None:
    shim.trim()
