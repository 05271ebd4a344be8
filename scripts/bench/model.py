"""The vocabulary of a comparison: columns, variants of a workload, and what a run yields."""

from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Column:
    """One measured quantity. `goal`: our value over the best peer's (at most, or at least when more is better)."""

    key: str
    title: str
    better: str = "less"  # "less" or "more"
    goal: Optional[float] = None
    digits: int = 0
    limit: Optional[float] = None  # an absolute bound instead of a ratio

    def best(self, values):
        return min(values) if self.better == "less" else max(values)

    def met(self, ratio):
        return ratio <= self.goal if self.better == "less" else ratio >= self.goal


@dataclass(frozen=True)
class Variant:
    """One row group of a workload: what is run for each contender, and how it is judged."""

    name: str  # short and safe in a file name
    title: str
    columns: tuple
    run: Callable  # contender -> {column key: value}
    repeats: int
    only: tuple = ()  # contender names, when not the default ones
    references: Optional[dict] = None  # our contender -> the one peer to compare it with


class Failed(Exception):
    """A run that did not come to its end; the table shows it, the comparison goes on."""
