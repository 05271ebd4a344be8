"""`flarena.stage`: marks the start and the end of a part of the program, and measures its memory.

A stage keeps no state outside of its own object, and never changes the result or the exception of the program.
"""

from __future__ import annotations

import functools
import time

from ._api import mark, rss_and_peak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])


class stage:  # noqa: N801  # used like a function
    """Mark `before_NAME` and `after_NAME` around a block or around each call of a function.

        with flarena.stage("train", round=n) as train:
            ...
        print(train.growth_bytes, train.peak_bytes)

        @flarena.stage("validate")
        def validate(): ...

    name   any text; it and its prefix are kept up to 128 bytes
    round  number of the round, 0 or more; None: unknown
    site   name of the federated site; None: unknown

    These are None until the block has ended, and without /proc:

    growth_bytes   RSS at the end minus RSS at the start
    peak_bytes     the highest RSS inside, if it is the highest of the process so far, because the kernel counts only
                   that one; otherwise the larger RSS of start and end, which is a lower bound
    is_new_peak    True if `peak_bytes` is the highest RSS of the process so far
    seconds        the time between start and end

    Never raises, and works without the library. The end is also marked when the block raises. Threads may use one
    decorated function at the same time; a `with` block needs its own object. A decorated coroutine function is
    marked while it is awaited, a decorated generator only while it is created.
    """

    growth_bytes: int | None = None
    peak_bytes: int | None = None
    is_new_peak: bool | None = None
    seconds: float | None = None

    def __init__(self, name: str, round: int | None = None, site: str | None = None) -> None:
        self._name = name
        self._round = round
        self._site = site
        self._begin: tuple[int | None, int | None] = (None, None)
        self._started = 0.0

    def __repr__(self) -> str:
        name = str.__repr__(self._name) if issubclass(type(self._name), str) else "?"
        if self.growth_bytes is None or self.peak_bytes is None or self.seconds is None:
            return f"<flarena.stage {name}>"
        growth, peak = self.growth_bytes / (1 << 20), self.peak_bytes / (1 << 20)
        return f"<flarena.stage {name}: {growth:+.1f} MB, peak {peak:.1f} MB, {self.seconds:.1f} s>"

    def __enter__(self) -> stage:
        self._mark("before_")
        self._begin = rss_and_peak()
        self._started = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._started
        (first, old_peak), (last, new_peak) = self._begin, rss_and_peak()
        if first is not None and last is not None:
            self.growth_bytes = last - first
            self.is_new_peak = old_peak is not None and new_peak is not None and new_peak > old_peak
            self.peak_bytes = new_peak if self.is_new_peak else max(first, last)
        self._mark("after_")

    def __call__(self, function: _F) -> _F:
        from inspect import iscoroutinefunction

        def again() -> stage:
            return stage(self._name, self._round, self._site)

        if iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured_coroutine(*args: Any, **kwargs: Any) -> Any:
                with again():
                    return await function(*args, **kwargs)

            return measured_coroutine  # type: ignore[return-value]

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return measured  # type: ignore[return-value]

    def _mark(self, prefix: str) -> None:
        # mark() reports a name that is not a text.
        mark(prefix + self._name if issubclass(type(self._name), str) else self._name, self._site, self._round)
