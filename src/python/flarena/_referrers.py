"""The search for the holder of one object: from referrer to referrer, up to a module, a frame, or a cycle.

It keeps no object alive after it ends. Objects of the search itself also refer to the objects that it
finds. Their ids are in the set `own`, and the search skips them. The search runs no code of the program:
it reads objects through `_foreign` only, and compares them by identity.
"""

from __future__ import annotations

import types
from gc import get_referents, get_referrers
from time import thread_time

from . import _foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._cpython import RunningLocals

__builtins__ = _foreign.BUILTINS  # type: ignore[assignment]

NOT_FOUND = "not found in time"  # the end of a chain
_WIDTH = 40  # objects that are followed in each step
_STEPS = 24
# Modules whose frames belong to the search, not to the program.
OWN_MODULES = ("flarena._api", "flarena._cpython", "flarena._foreign", "flarena._holders", __name__, "flarena._sites")


class Search:
    """One search. `deadline` is a time of `time.thread_time()` in seconds."""

    def __init__(self, local: RunningLocals, deadline: float) -> None:
        self._local, self._deadline = local, deadline
        self._modules = {id(_foreign.module_namespace(module)): name for name, module in _foreign.modules().items()}
        # id of a variable's value -> the namespace. The collector needs a walk through all objects to tell it.
        self._namespaces = {id(value): names for names, value in _foreign.variables_of_modules()}
        self._known: dict[int, Any] = {}  # id -> each object that was found
        self._referrers: dict[int, list[int]] = {}  # id of an object -> ids of its referrers
        self._toward: dict[int, int] = {}  # id of a referrer -> id of the object through which it was found

    def chain(self, held: Any, trail: tuple[Any, ...], size: int, own: set[int]) -> dict[str, Any]:
        """The chain that holds the object, from its end (a module, a frame or a cycle) down to the object.

        trail  untracked containers around the object, the innermost first; gc.get_referrers does not find them
        size   bytes of the object's block
        own    ids of the caller's objects that refer to the object
        """
        try:
            outermost = self._enter(held, trail)
            end, last = self._spread(outermost, own | {id(trail)})
            what = _foreign.type_name(held)
            if end == NOT_FOUND:
                return {"object": what, "bytes": size, "end": end, "chain": [], "text": f"{what}: {end}"}
            path = self._cycle(outermost) if end == "cycle" else self._path(last)
            return {"object": what, "bytes": size, "end": end, "chain": path, "text": self._text(end, path, what)}
        finally:
            self._known.clear()
            self._local_end = None

    def _enter(self, held: Any, trail: tuple[Any, ...]) -> Any:
        self._known[id(held)] = held
        for outer in trail:
            self._known[id(outer)] = outer
            self._toward[id(outer)] = id(held)
            self._referrers[id(held)] = [id(outer)]
            held = outer
        return held

    def _spread(self, held: Any, own: set[int]) -> tuple[str, int]:
        frontier = [held]
        own |= {id(self._known), id(self._local.entries), id(self.__dict__), *map(id, self._local.entries)}
        for _ in range(_STEPS):
            for one in frontier:
                end = self._end_of(one)
                if end:
                    return end, id(one)
            for one in frontier:
                names = self._namespaces.get(id(one))
                if names is not None and _foreign.name_of(names, one):
                    self._known[id(names)] = names
                    self._toward[id(names)] = id(one)
                    return "module", id(names)
            if thread_time() > self._deadline:
                return NOT_FOUND, id(held)
            # A call with *frontier would make a tuple that refers to the objects. Its id must be in `own`.
            asked = tuple(frontier)
            found = get_referrers(*asked)
            own |= {id(found), id(frontier), id(asked)}
            frontier = self._new(found, frontier, own)
            del found, asked
            if not frontier:
                return "cycle", id(held)
        return "unknown", id(frontier[0])

    def _new(self, found: list[Any], frontier: list[Any], own: set[int]) -> list[Any]:
        ids = {id(one) for one in frontier}
        new: list[Any] = []
        for referrer in found:
            is_frame = type(referrer) is types.FrameType
            if id(referrer) in own or is_frame and self._local.is_excluded(referrer):
                continue
            for child in get_referents(referrer):
                if id(child) in ids and child is not referrer:
                    self._referrers.setdefault(id(child), []).append(id(referrer))
                    self._toward.setdefault(id(referrer), id(child))
            if id(referrer) not in self._known and len(new) < _WIDTH:
                self._known[id(referrer)] = referrer
                new.append(referrer)
        return new

    _local_end: tuple[types.FrameType, str] | None = None

    def _end_of(self, one: Any) -> str | None:
        if id(one) in self._modules or _foreign.is_instance(one, types.ModuleType) or _foreign.is_instance(one, type):
            return "module"
        if type(one) is types.FrameType:
            return "frame"
        self._local_end = self._local.holder_of(one)
        return "frame" if self._local_end else None

    def _path(self, last: int) -> list[str]:
        """The steps from the end of the chain to the object."""
        steps = []
        at: int | None = last
        first = self._known[last]
        if self._local_end:
            frame, name = self._local_end
            steps.append(f"{_place(frame)}: {name}")
        elif type(first) is types.FrameType:
            steps.append(_place(first))
        while at is not None:
            child = self._toward.get(at)
            if child is None or child not in self._known:
                break
            steps.append(self._step(at, child))
            at = child
        return _short(steps)

    def _step(self, holder: int, child: int) -> str:
        one, other = self._known[holder], self._known.get(child)
        if id(one) in self._modules:
            return f"module {self._modules[id(one)]}: {_foreign.name_of(one, other) or '?'}"
        owner = self._owner(one)
        name = _attribute(one if owner is None else owner, other)
        if name:
            return f"{_foreign.type_name(one if owner is None else owner)}.{name}"
        is_step = type(one) is types.FrameType or other is not None and _foreign.instance_namespace(one) is other
        return "" if is_step else _foreign.type_name(one)

    def _owner(self, one: Any) -> Any:
        """The instance whose `__dict__` this is, or None."""
        if not _foreign.is_instance(one, dict):
            return None
        owners = (self._known.get(owner) for owner in self._referrers.get(id(one), ()))
        return next((owner for owner in owners if _foreign.instance_namespace(owner) is one), None)

    def _cycle(self, held: Any) -> list[str]:
        """The steps of a cycle: a walk from referrer to referrer until it meets an object for the second time."""
        at, walked = id(held), [id(held)]
        while True:
            referrers = [one for one in self._referrers.get(at, ()) if one in self._known]
            if not referrers:
                return _short([self._step(b, a) for a, b in zip(walked, walked[1:])][::-1])
            at = next((one for one in referrers if one in walked), referrers[0])
            if at in walked:
                break
            walked.append(at)
        loop = [at, *reversed(walked[walked.index(at) :])]
        steps = [(self._known[a], self._step(a, b)) for a, b in zip(loop, loop[1:])]
        # Begin with an attribute, which reads best.
        first = next((i for i, (_, step) in enumerate(steps) if "." in step), 0)
        steps = steps[first:] + steps[:first]
        begin = steps[0][0]
        owner = self._owner(begin)
        return [*_short([step for _, step in steps]), _foreign.type_name(begin if owner is None else owner)]

    def _text(self, end: str, path: list[str], what: str) -> str:
        joined = " -> ".join(path)
        if end == "cycle":
            return f"cycle: {joined}"
        return f"{joined} -> {what}" if joined else what


_WITHOUT_ATTRIBUTES = (dict, list, tuple, set, frozenset, types.FrameType, types.ModuleType)
_CONTAINERS = ("dict", "list", "tuple", "set", "deque", "cell")


def _short(steps: list[str]) -> list[str]:
    """The steps without unnamed containers, unless there are no others."""
    named = any(step and step not in _CONTAINERS for step in steps)
    return [step for step in steps if step and not (named and step in _CONTAINERS)]


def _place(frame: types.FrameType) -> str:
    code = frame.f_code
    file, name = str.__str__(code.co_filename), str.__str__(code.co_name)
    return f"{file.rpartition('/')[2]}:{frame.f_lineno} in {name}"


def _attribute(one: Any, other: Any) -> str | None:
    """The name of the attribute of `one` that is `other`: in its `__dict__`, or a slot of its class."""
    if any(_foreign.is_instance(one, kind) for kind in _WITHOUT_ATTRIBUTES):
        return None
    namespace = _foreign.instance_namespace(one)
    name = None if namespace is None else _foreign.name_of(namespace, other)
    return name or next((name for name, value in _foreign.slots(one) if value is other), None)
