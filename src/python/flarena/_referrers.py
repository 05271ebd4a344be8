"""The search for the holder of an object: from referrer to referrer, up to a module, a frame, or a cycle.

It keeps nothing alive when it has ended.
"""

from __future__ import annotations

import gc
import sys
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WIDTH = 40  # objects followed at each step
_STEPS = 24
_OPTIMIZED = 1  # CO_OPTIMIZED: a function's own variables, not a module's namespace
_OURS = (__name__, "flarena._holders", "flarena._sites", "flarena._memory")


# variables of functions that run


class Locals:
    """The variables of every running function, which no list of referrers knows."""

    def __init__(self) -> None:
        self.entries: list[tuple[types.FrameType, str, Any]] = []
        own = sys._getframe()
        for frame in list(sys._current_frames().values()):
            self._add_stack(frame)
        del own, frame

    def _add_stack(self, frame: types.FrameType | None) -> None:
        while frame is not None:
            if not _is_ours(frame) and _is_function(frame):
                variables = frame.f_locals
                self.entries += [(frame, name, value) for name, value in variables.items()]
                # Before 3.13 the frame keeps this copy, and with it all values; nobody else has it.
                if sys.version_info < (3, 13) and sys.getrefcount(variables) <= 3:
                    variables.clear()
            frame = frame.f_back

    def holder_of(self, held: Any) -> tuple[types.FrameType, str] | None:
        return next(((frame, name) for frame, name, value in self.entries if value is held), None)

    def forget(self) -> None:
        self.entries.clear()


def _is_function(frame: types.FrameType) -> bool:
    return bool(frame.f_code.co_flags & _OPTIMIZED)


# the chain


class Search:
    def __init__(self, local: Locals, deadline: float) -> None:
        self._local, self._deadline = local, deadline
        self._modules = {id(vars(module)): name for name, module in list(sys.modules.items()) if _has_vars(module)}
        self._known: dict[int, Any] = {}
        self._referrers: dict[int, list[int]] = {}  # of an object: those that were found
        self._toward: dict[int, int] = {}  # of a referrer: the object that led to it
        self._names: dict[tuple[int, int], str] = {}

    def chain(self, held: Any, trail: tuple[Any, ...], size: int, own: set[int]) -> dict[str, Any]:
        """From the object outwards, the nearest end first. The trail is what nobody else knows of."""
        try:
            outermost = self._enter(held, trail)
            end, last = self._spread(outermost, own | {id(trail)})
            path = self._cycle(outermost) if end == "cycle" else self._path(last)
            what = _type_name(held)
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
            if time.monotonic() > self._deadline:
                return "unknown", id(frontier[0])
            asked = tuple(frontier)  # a tuple of our own, which is then known as ours
            found = gc.get_referrers(*asked)
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
            if id(referrer) in own or isinstance(referrer, types.FrameType) and _is_ours(referrer):
                continue
            for child in gc.get_referents(referrer):
                if id(child) in ids and child is not referrer:
                    self._referrers.setdefault(id(child), []).append(id(referrer))
                    self._toward.setdefault(id(referrer), id(child))
            if id(referrer) not in self._known and len(new) < _WIDTH:
                self._known[id(referrer)] = referrer
                new.append(referrer)
        return new

    _local_end: tuple[types.FrameType, str] | None = None

    def _end_of(self, one: Any) -> str | None:
        if id(one) in self._modules or isinstance(one, (types.ModuleType, type)):
            return "module"
        if isinstance(one, types.FrameType):
            return "frame"
        self._local_end = self._local.holder_of(one)
        return "frame" if self._local_end else None

    def _path(self, last: int) -> list[str]:
        """The steps from the end to the object."""
        steps = []
        at: int | None = last
        first = self._known[last]
        if self._local_end:
            frame, name = self._local_end
            steps.append(f"{_place(frame)}: {name}")
        elif isinstance(first, types.FrameType):
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
            name = next((key for key, value in one.items() if value is other), "?")
            return f"module {self._modules[id(one)]}: {name}"
        owner = self._owner(one)
        name = _attribute(one if owner is None else owner, other)
        if name:
            return f"{_type_name(one if owner is None else owner)}.{name}"
        is_step = isinstance(one, types.FrameType) or getattr(one, "__dict__", None) is other
        return "" if is_step else _type_name(one)

    def _owner(self, one: Any) -> Any:
        """The instance whose attributes this dictionary holds, where there is such a one."""
        if not isinstance(one, dict):
            return None
        owners = (self._known.get(owner) for owner in self._referrers.get(id(one), ()))
        return next((owner for owner in owners if getattr(owner, "__dict__", None) is one), None)

    def _cycle(self, held: Any) -> list[str]:
        """Among objects that only refer to each other a walk comes back to where it was."""
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
        # A person begins with an attribute.
        first = next((i for i, (_, step) in enumerate(steps) if "." in step), 0)
        steps = steps[first:] + steps[:first]
        begin = steps[0][0]
        owner = self._owner(begin)
        return [*_short([step for _, step in steps]), _type_name(begin if owner is None else owner)]

    def _text(self, end: str, path: list[str], what: str) -> str:
        joined = " -> ".join(path)
        if end == "cycle":
            return f"cycle: {joined}"
        return f"{joined} -> {what}" if joined else what


_CONTAINERS = ("dict", "list", "tuple", "set", "deque", "cell")


def _short(steps: list[str]) -> list[str]:
    """Without the containers between two names."""
    named = any(step and step not in _CONTAINERS for step in steps)
    return [step for step in steps if step and not (named and step in _CONTAINERS)]


def _has_vars(module: Any) -> bool:
    return isinstance(module, types.ModuleType)


def _is_ours(frame: types.FrameType) -> bool:
    return frame.f_globals.get("__name__") in _OURS


def _place(frame: types.FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} in {code.co_name}"


def _type_name(one: Any) -> str:
    return one.__name__ if isinstance(one, (type, types.FunctionType)) else type(one).__name__


def _attribute(one: Any, other: Any) -> str | None:
    """The attribute of an instance that is this object, or whose namespace or container it is."""
    if isinstance(one, (dict, list, tuple, set, frozenset, types.FrameType, types.ModuleType)):
        return None
    namespace = getattr(one, "__dict__", None)
    if isinstance(namespace, dict):
        for name, value in list(namespace.items()):
            if value is other and isinstance(name, str):
                return name
    for kind in type(one).__mro__:
        for name, slot in list(vars(kind).items()):
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    if slot.__get__(one) is other:
                        return name
                except Exception:  # a slot without a value
                    continue
    return None
