"""Finds the references that hold the large objects of an allocation site.

The result is a chain of referrers from each object up to a module, a frame, or a cycle without a holder.
The search runs at a safe point, has a limit of CPU time, and keeps no object alive after it ends. The result
contains the names of types, attributes, variables and functions. It never contains values, nor keys of
dictionaries, which may be values of the program.

The library runs `answer` between two instructions of the program. So this module and those of the search use the
builtins and functions that they found when they were imported, not those that the program has put there since.
"""

from __future__ import annotations

from _json import encode_basestring_ascii
from gc import get_objects, get_referents
from time import thread_time

from . import _foreign
from ._cpython import LargeKinds, RunningLocals, is_untracked_container
from ._referrers import OWN_MODULES, Search
from ._sites import request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

__builtins__ = _foreign.BUILTINS  # type: ignore[assignment]

_CHUNK = 512  # containers that are inspected between two checks of the time limit
_MOST_NESTED = 24  # levels of untracked containers within each other
_CANDIDATES_PER_CHAIN = 4  # largest blocks whose objects are searched for, for each chain of the result


def find(site: int, seconds: float = 1.0, most: int = 3) -> dict[str, Any]:
    """The chains of up to `most` of the largest objects of a site, the largest first.

    seconds  CPU time of this thread; "complete" in the result is False if it did not suffice to look at all
             objects, and the "end" of a chain says so if it did not suffice for that
    """
    begin = thread_time()
    # Half of the time finds the objects, so that some is left for their holders.
    half, deadline = begin + seconds / 2, begin + seconds
    blocks = sorted(_blocks_of(site), key=lambda block: -block[1])
    local = RunningLocals(OWN_MODULES)
    try:
        found = list(_objects_in(blocks[: _CANDIDATES_PER_CHAIN * most], most, local, half))[:most]
        complete = thread_time() < half
        chains = []
        while found:
            held, trail, size = found.pop(0)
            # The remaining entries refer to the same containers, but belong to this search.
            own = {id(found), *(id(part) for entry in found for part in (entry, entry[1]))}
            chains.append(Search(local, deadline).chain(held, trail, size, own))
            del held, trail
    finally:
        local.forget()
    return {"site": site, "blocks": len(blocks), "complete": complete, "chains": chains}


def answer() -> None:
    """Send the library the chains of the site that a client of the control channel asked for.

    The library calls this in the main thread, between two instructions. It drops an exception that does
    not belong to the program.
    """
    try:
        site = request("wanted")
        if site:
            request("holders " + _to_json(find(int(site))))
    except BaseException:
        request("holders {}")
        raise


def _to_json(value: Any) -> str:
    """The module json would run the program's builtins."""
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if type(value) is str:
        return encode_basestring_ascii(value)
    if type(value) is list:
        return "[" + ",".join(map(_to_json, value)) + "]"
    return "{" + ",".join(f"{_to_json(key)}:{_to_json(one)}" for key, one in value.items()) + "}"


def largest_site() -> int | None:
    """The number of the site that holds most, or None if no site is known."""
    import json

    sites = json.loads(request("who") or "{}").get("sites")
    return int(sites[0]["site"]) if sites else None


def _blocks_of(site: int) -> Iterator[tuple[int, int]]:
    """Address and bytes of each live block of a site."""
    for line in (request(f"blocks {site}") or "").splitlines():
        start, _, size = line.partition(" ")
        yield int(start), int(size)


def _objects_in(
    blocks: list[tuple[int, int]], most: int, local: RunningLocals, deadline: float
) -> Iterator[tuple[Any, tuple[Any, ...], int]]:
    """The objects whose memory begins in these blocks, each with its trail and bytes, the largest first.

    A trail is the untracked containers around the object, the innermost first. The collector lists neither
    bytes nor NumPy arrays, so the search goes through the containers that refer to them. It ends with the objects of
    the `most` largest blocks.
    """
    size_at = dict(blocks)
    kinds = LargeKinds()
    best: dict[int, tuple[Any, tuple[Any, ...], int]] = {}
    candidates = _candidates(local, kinds, deadline)
    for held, trail in candidates:
        address = kinds.address_of(held)
        if address is None:
            continue
        start = address if address in size_at else _block_around(address, blocks)
        if start is not None and start not in best:
            best[start] = held, trail, size_at[start]
            if all(largest in best for largest, _ in blocks[:most]):
                break
    candidates.close()  # its list of all objects contains the generator itself
    yield from sorted(best.values(), key=lambda found: -found[2])


def _block_around(address: int, blocks: list[tuple[int, int]]) -> int | None:
    return next((start for start, size in blocks if start <= address < start + size), None)


def _candidates(
    local: RunningLocals, kinds: LargeKinds, deadline: float
) -> Generator[tuple[Any, tuple[Any, ...]], None, None]:
    """Every object of a large kind with its trail, until the time limit."""
    for _, _, value in local.entries:
        yield from _inside(value, kinds)
    yield from _referred_to_by([value for _, value in _foreign.variables_of_modules()], kinds, deadline)
    yield from _referred_to_by(get_objects(), kinds, deadline)


def _referred_to_by(
    containers: list[Any], kinds: LargeKinds, deadline: float
) -> Generator[tuple[Any, tuple[Any, ...]], None, None]:
    """The objects of a large kind among these objects and in them."""
    parts: list[Any] = []
    try:
        for at in range(0, len(containers), _CHUNK):
            if thread_time() > deadline:
                return
            parts = containers[at : at + _CHUNK]
            parts += get_referents(*parts)
            for one in kinds.without_small(parts):
                yield from _inside(one, kinds)
    finally:
        # Both lists contain this generator and its frame: a cycle that would keep every object alive.
        containers.clear()
        parts.clear()


def _inside(one: Any, kinds: LargeKinds, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    if kinds.is_large(type(one)):
        yield one, trail
    elif is_untracked_container(one) and len(trail) < _MOST_NESTED:
        for part in get_referents(one):
            yield from _inside(part, kinds, (one, *trail))
