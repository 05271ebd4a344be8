"""What every hook needs: the library where stages have a use, a marker with a collection before it, and a guard."""

from __future__ import annotations

import functools
import os

from . import _collector
from ._log import collections_wanted, markers_wanted, note, sites_wanted
from ._native import shim as find_shim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from ._native import Shim

    # The hooks' part of the list in src/shared/stages.rs, which is tested against this one.
    Stage = Literal[
        "before_trim",
        "after_trim",
        "start_run",
        "end_run",
        "round_started",
        "before_aggregation",
        "after_aggregation",
        "before_task",
        "after_task",
        "after_send_result",
        "before_train",
        "after_train",
        "before_evaluate",
        "after_evaluate",
        "receive",
        "before_send",
        "send",
    ]

# Where this process last was: who cleans up is not told. A job process works on one round at a time.
_here: tuple[str | None, int | None] = (None, None)


def guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook's own part: whatever goes wrong in it is swallowed after one line."""

    @functools.wraps(hook)
    def guard(*args: Any) -> Any:
        try:
            return hook(*args)
        except Exception as error:  # never an interrupt or an exit: those are the program's
            note(f"the {hook.__name__.strip('_')} hook", error)
            return None

    return guard


def staging_shim() -> Shim | None:
    """The library, where stages have a use: a marker, a collection, or the round of an allocation."""
    wanted = any(wanted(os.environ) for wanted in (markers_wanted, collections_wanted, sites_wanted))
    shim = find_shim() if wanted else None
    if shim is not None:
        _collector.watch()
    return shim


def emit(shim: Shim, stage: Stage, site: str | None, round: int | None) -> None:
    _collector.safe_point()  # first, so that the marker says what the program holds, not what it has forgotten
    mark(shim, stage, site, round)


def mark(shim: Shim, stage: Stage, site: str | None, round: int | None) -> None:
    global _here
    _here = (site, round)
    shim.mark(stage, site, round)


@guarded
def mark_here(shim: Shim, stage: Stage) -> None:
    shim.mark(stage, *_here)
