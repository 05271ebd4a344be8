"""Finds the references that hold the large objects of an allocation site.

The result is a chain of referrers from each object up to a module, a frame, or a cycle without a holder.
The search runs at a safe point, has a time limit, and keeps no object alive after it ends. The result
contains the names of types, attributes, variables and functions. It never contains values, nor keys of
dictionaries, which may be values of the program.
"""

from __future__ import annotations

import gc
import time

from ._cpython import LargeKinds, RunningLocals, is_untracked_container
from ._referrers import OWN_MODULES, Search
from ._safety import belongs_to_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

_CHUNK = 512  # containers that are inspected between two checks of the time limit
_MOST_NESTED = 24  # levels of untracked containers within each other
_CANDIDATES_PER_CHAIN = 4  # largest blocks whose objects are searched for, for each chain of the result


def find(site: int, seconds: float = 1.0, most: int = 3) -> dict[str, Any]:
    """The chains of up to `most` of the largest objects of a site, the largest first.

    seconds  time limit; "complete" in the result is False if it was reached
    """
    deadline = time.monotonic() + seconds
    blocks = sorted(_blocks_of(site), key=lambda block: -block[1])
    local = RunningLocals(OWN_MODULES)
    try:
        found = list(_objects_in(blocks[: _CANDIDATES_PER_CHAIN * most], local, deadline))[:most]
        chains = []
        while found:
            held, trail, size = found.pop(0)
            # The remaining entries refer to the same containers, but belong to this search.
            own = {id(found), *(id(part) for entry in found for part in (entry, entry[1]))}
            chains.append(Search(local, deadline).chain(held, trail, size, own))
            del held, trail
    finally:
        local.forget()
    return {"site": site, "blocks": len(blocks), "complete": time.monotonic() < deadline, "chains": chains}


def answer() -> None:
    """Send the library the chains of the site that a client of the control channel asked for.

    The library calls this in the main thread, at a safe point. Raises exceptions of the program only.
    """
    from ._sites import request

    try:
        site = request("wanted")
        if site:
            import json

            request("holders " + json.dumps(find(int(site))))
    except BaseException as error:
        request("holders {}")
        if belongs_to_program(error):
            raise


def largest_site() -> int | None:
    """The number of the site that holds most, or None if no site is known."""
    import json

    from ._sites import request

    sites = json.loads(request("who") or "{}").get("sites")
    return int(sites[0]["site"]) if sites else None


def _blocks_of(site: int) -> Iterator[tuple[int, int]]:
    """Address and bytes of each live block of a site."""
    from ._sites import request

    for line in (request(f"blocks {site}") or "").splitlines():
        start, _, size = line.partition(" ")
        yield int(start), int(size)


def _objects_in(
    blocks: list[tuple[int, int]], local: RunningLocals, deadline: float
) -> Iterator[tuple[Any, tuple[Any, ...], int]]:
    """The objects whose memory begins in these blocks, each with its trail and bytes, the largest first.

    A trail is the untracked containers around the object, the innermost first. The collector lists neither
    bytes nor NumPy arrays, so the search goes through the containers that refer to them.
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
            if len(best) == len(blocks):
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
                elif is_untracked_container(one):
                    yield from _inside(one, kinds)
    finally:
        # Both lists contain this generator and its frame: a cycle that would keep every object alive.
        containers.clear()
        chunk.clear()


def _inside(one: Any, kinds: LargeKinds, trail: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    if kinds.is_large(type(one)):
        yield one, trail
    elif is_untracked_container(one) and len(trail) < _MOST_NESTED:
        for part in gc.get_referents(one):
            yield from _inside(part, kinds, (one, *trail))
