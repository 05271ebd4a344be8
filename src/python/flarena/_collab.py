"""The hooks for NVFlare's Collab API, in which sites call each other's methods and no event names a round.

- `App.find_collab_method` returns the published method for each call that arrives at a site.
- `Group` and `Proxy.call_func` make the calls to all other sites, or to one.

A method's argument `round` or `current_round` is the round of its markers. Without one it is the number of the
call, counted for each method.
"""

from __future__ import annotations

import functools
import threading

from ._marking import emit, guarded, number_or_none, stage_hook, text_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._marking import Stage
    from ._native import Shim

_ROUND_ARGUMENTS = ("current_round", "round", "round_num", "server_round")

_lock = threading.Lock()  # calls arrive in a pool of threads
_calls: dict[tuple[Stage, str], int] = {}


@stage_hook
def hook_app(shim: Shim, module: Any) -> None:
    """Mark before and after each method that another site calls here."""
    find = module.App.find_collab_method

    @functools.wraps(find)
    def marked_find(self: Any, target: Any, name: Any) -> Any:
        method = find(self, target, name)
        return method and _marked(shim, self, name, method, "before_call", "after_call")

    module.App.find_collab_method = marked_find


@stage_hook
def hook_group(shim: Shim, module: Any) -> None:
    """Mark each call to a group of sites when it returns."""
    get = module.Group.__getattr__

    @functools.wraps(get)
    def marked_get(self: Any, name: Any) -> Any:
        return _marked(shim, vars(self).get("_app"), name, get(self, name), None, "call_returned")

    module.Group.__getattr__ = marked_get


@stage_hook
def hook_proxy(shim: Shim, module: Any) -> None:
    """Mark each call to one site when it returns."""
    call = module.Proxy.call_func

    @functools.wraps(call)
    def marked_call(self: Any, call_opt: Any, name: Any, args: Any, kwargs: Any) -> Any:
        result = call(self, call_opt, name, args, kwargs)
        _mark(shim, "call_returned", vars(self).get("app"), name, kwargs)
        return result

    module.Proxy.call_func = marked_call


def _marked(shim: Shim, app: Any, name: Any, method: Any, before: Stage | None, after: Stage) -> Callable[..., Any]:
    @functools.wraps(method)
    def marked_method(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            _mark(shim, before, app, name, kwargs)
        result = method(*args, **kwargs)
        _mark(shim, after, app, name, kwargs)
        return result

    return marked_method


@guarded
def _mark(shim: Shim, stage: Stage, app: Any, name: Any, kwargs: Any) -> None:
    with _lock:
        count = _calls.get((stage, name), 0)
        _calls[stage, name] = count + 1
    named = (number_or_none(kwargs[key]) for key in _ROUND_ARGUMENTS if key in kwargs)
    round = next((number for number in named if number is not None), count)
    emit(shim, stage, text_or_none(getattr(app, "name", None)), round)
