"""The parts that all hooks share: find the library, emit a marker, and keep errors away from the program."""

from __future__ import annotations

import functools
import os

from . import _collector, _log
from ._native import shim as find_shim
from ._safety import belongs_to_program
from ._settings import collections_wanted, gc_rounds, markers_wanted, sites_wanted, warn_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from ._native import Shim

    # The stages that hooks emit. A test of src/shared compares this list with src/shared/stages.rs.
    Stage = Literal[
        "before_trim",
        "after_trim",
        "start_run",
        "end_run",
        "round_started",
        "before_aggregation",
        "after_aggregation",
        "result_processed",
        "before_task",
        "after_task",
        "after_send_result",
        "before_train",
        "after_train",
        "boosted",
        "before_evaluate",
        "after_evaluate",
        "receive",
        "cache_kept",
        "before_send",
        "send",
        "before_call",
        "after_call",
        "call_returned",
    ]

# After these the process waits for others: for the next task, or for the results of the clients.
_BEFORE_WAIT: tuple[Stage, ...] = ("send", "after_send_result", "after_aggregation")

# Site and round of the last marker of this process. The cleanup hook gets neither as an argument.
# A job process works on one round at a time, so the last marker's round is right.
_last_place: tuple[str | None, int | None] = (None, None)


def guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Make a hook return None instead of raising. The first error of the process writes one line to stderr."""

    @functools.wraps(hook)
    def guard(*args: Any) -> Any:
        try:
            return hook(*args)
        except BaseException as error:
            if belongs_to_program(error):
                raise
            warn_once(f"the {hook.__name__.strip('_')} hook", error)
            return None

    return guard


def shim_for_stages() -> Shim | None:
    """The library, if stages have a use in this process: markers, collections, allocation sites or cleanups."""
    is_wanted = any(wanted(os.environ) for wanted in (markers_wanted, collections_wanted, sites_wanted, gc_rounds))
    shim = find_shim() if is_wanted else None
    if shim is not None:
        _collector.watch()
    return shim


def stage_hook(hook: Callable[[Shim, Any], None]) -> Callable[[Any], None]:
    """Make a hook that gets the library and the imported module run only where stages have a use."""

    @functools.wraps(hook)
    def run(module: Any) -> None:
        shim = shim_for_stages()
        if shim is not None:
            hook(shim, module)

    return run


def emit(shim: Shim, stage: Stage, site: str | None, round: int | None, collects: bool = True) -> None:
    """Release what the stage does not need, then mark it. So the marker does not count that memory."""
    release_before(shim, stage, collects)
    mark(shim, stage, site, round)


def release_before(shim: Shim, stage: Stage, collects: bool = True) -> None:
    """Collect garbage if that is due. Before a wait, also return the recycler's cache to the system."""
    waits = stage in _BEFORE_WAIT
    if collects:
        _collector.safe_point(waits)
    if waits:
        shim.before_wait()


def mark(shim: Shim, stage: Stage, site: str | None, round: int | None) -> None:
    """Mark the stage without a collection, also in NVFlare's logs."""
    global _last_place
    _last_place = (site, round)
    line = shim.mark_and_copy(stage, site, round)
    _log.copy_to_log(line)
    # A trainer in the client's job ends its round when the result is on its way.
    if line and stage in _BEFORE_WAIT and not (stage == "send" and line.startswith("[RSS] CJ")):
        _log.write_memory(shim, line)


def mark_in_signal_handler(shim: Shim, stage: Stage, site: str | None, round: int | None) -> None:
    """Mark the stage without a collection, and not in logs: the interrupted code may hold their locks."""
    shim.mark(stage, site, round)


@guarded
def mark_at_last_place(shim: Shim, stage: Stage) -> None:
    """Mark the stage with the site and round of the marker before it."""
    _log.copy_to_log(shim.mark_and_copy(stage, *_last_place))


def text_or_none(value: Any) -> str | None:
    """A site's name, or None if the framework gives something else or an empty text."""
    # An exact text, because a subclass may have methods of the program.
    return str.__str__(value) or None if issubclass(type(value), str) else None


def number_or_none(value: Any) -> int | None:
    """A round's number, or None. Accepts an int and any number of NumPy or JSON."""
    try:
        return int(value)
    except Exception as error:  # not a number, or an error of the program's own number type
        if belongs_to_program(error):
            raise
        return None
