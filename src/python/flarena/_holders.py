"""Who holds the large objects of an allocation site: the chain of referrers up to a module, a frame, or a
cycle that nobody holds.

Run at a safe point, bounded in time. It keeps nothing alive when it has ended. Told are types, attributes,
variables and functions by name; never values, nor keys of dictionaries, which are values, too.
"""

from __future__ import annotations

import gc
import sys
import time

from ._referrers import Locals, Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

_CHUNK = 512  # containers looked into at a time
_NESTED = 24  # containers within containers


def find(site: int, seconds: float = 1.0, most: int = 3) -> dict[str, Any]:
    """The chains of the largest objects of a site, the largest first."""
    deadline = time.monotonic() + seconds
    blocks = sorted(_blocks(site), key=lambda block: -block[1])
    local = Locals()
    try:
        found = list(_objects(blocks[: 4 * most], local, deadline))[:most]
        chains = []
        while found:
            held, trail, size = found.pop(0)
            # Two objects of one dictionary have it in both trails.
            own = {id(found), *(id(part) for entry in found for part in (entry, entry[1]))}
            chains.append(Search(local, deadline).chain(held, trail, size, own))
            del held, trail
    finally:
        local.forget()
    return {"site": site, "blocks": len(blocks), "complete": time.monotonic() < deadline, "chains": chains}


def answer() -> None:
    """Called by the library in the main thread, at a safe point, when a client asked who holds a site."""
    from ._sites import request

    try:
        site = request("wanted")
        if site:
            import json

            request("holders " + json.dumps(find(int(site))))
    except Exception:  # the program is not to see what went wrong here
        request("holders {}")


def largest_site() -> int | None:
    import json

    from ._sites import request

    sites = json.loads(request("who") or "{}").get("sites")
    return int(sites[0]["site"]) if sites else None


def _blocks(site: int) -> Iterator[tuple[int, int]]:
    from ._sites import request

    for line in (request(f"blocks {site}") or "").splitlines():
        start, _, size = line.partition(" ")
        yield int(start), int(size)


# the objects of some blocks


def _objects(
    blocks: list[tuple[int, int]], local: Locals, deadline: float
) -> Iterator[tuple[Any, tuple[Any, ...], int]]:
    """The objects whose memory begins in these blocks. NumPy's arrays and bytes are known to no list of
    the interpreter's: they are found through what refers to them."""
    size_at = dict(blocks)
    kinds = _Kinds()
    best: dict[int, tuple[Any, tuple[Any, ...], int]] = {}
    candidates = _candidates(local, kinds, deadline)
    for held, trail in candidates:
        address = kinds.address(held)
        if address is None:
            continue
        start = address if address in size_at else _block_of(address, blocks)
        if start is not None and start not in best:
            best[start] = held, trail, size_at[start]
            if len(best) == len(blocks):
                break
    candidates.close()  # it has a list of all objects, itself among them
    yield from sorted(best.values(), key=lambda found: -found[2])


def _block_of(address: int, blocks: list[tuple[int, int]]) -> int | None:
    return next((start for start, size in blocks if start <= address < start + size), None)


def _candidates(local: Locals, kinds: _Kinds, deadline: float) -> Generator[tuple[Any, tuple[Any, ...]], None, None]:
    """Every object that may be large, and the containers around it that the interpreter does not list:
    dictionaries and tuples of nothing but numbers, texts and arrays."""
    for _, _, value in local.entries:
        yield from _inside(value, kinds)
    containers, chunk = gc.get_objects(), []
    try:
        for at in range(0, len(containers), _CHUNK):
            if time.monotonic() > deadline:
                return
            chunk = containers[at : at + _CHUNK]
            for one in chunk:
                if kinds.is_large(type(one)):
                    yield one, ()
            for one in gc.get_referents(*chunk):
                if kinds.is_large(type(one)):
                    yield one, ()
                elif type(one) in (dict, tuple) and not gc.is_tracked(one):
                    yield from _inside(one, kinds)
    finally:
        # They hold this generator and its frame, too: a cycle that would keep the whole program.
        containers.clear()
        chunk.clear()


def _inside(one: Any, kinds: _Kinds, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    if kinds.is_large(type(one)):
        yield one, trail
    elif type(one) in (dict, tuple) and not gc.is_tracked(one) and len(trail) < _NESTED:
        for part in gc.get_referents(one):
            yield from _inside(part, kinds, (one, *trail))


class _Kinds:
    """The kinds of objects that keep large memory, and where theirs lies."""

    def __init__(self) -> None:
        self._array = getattr(sys.modules.get("numpy"), "ndarray", ())
        self._tensor = getattr(sys.modules.get("torch"), "Tensor", ())
        self._is_large: dict[type, bool] = {}

    def is_large(self, kind: type) -> bool:
        large = self._is_large.get(kind)
        if large is None:
            large = issubclass(kind, (bytes, bytearray, self._array or bytes, self._tensor or bytes))
            self._is_large[kind] = large
        return large

    def address(self, held: Any) -> int | None:
        return self._where(held) if self.is_large(type(held)) else None

    def _where(self, held: Any) -> int | None:
        try:
            if isinstance(held, bytes):
                return id(held)
            if isinstance(held, bytearray):
                import ctypes

                return ctypes.addressof(ctypes.c_char.from_buffer(held)) if held else None
            if self._array and isinstance(held, self._array):
                return int(held.__array_interface__["data"][0])
            return int(held.untyped_storage().data_ptr())
        except Exception:  # an object that only looks like one
            return None
