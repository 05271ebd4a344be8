"""Data types of a comparison: columns and variants of a workload."""

from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Column:
    """One measured quantity. `goal` bounds flarena's value divided by the best peer's."""

    key: str
    title: str
    better: str = "less"  # "less" or "more"
    goal: Optional[float] = None
    digits: int = 0
    limit: Optional[float] = None  # an absolute bound instead of a ratio

    def best(self, values):
        return min(values) if self.better == "less" else max(values)

    def is_met(self, ratio):
        return ratio <= self.goal if self.better == "less" else ratio >= self.goal


@dataclass(frozen=True)
class Variant:
    """One table of a workload: a run for each contender, and the columns of its result."""

    name: str  # part of a file name
    title: str
    columns: tuple
    run: Callable  # contender -> {column key: value}
    repeats: int
    only: tuple = ()  # names of contenders; empty: the default ones
    references: Optional[dict] = None  # contender -> the peer it is compared with, instead of the best one


class Failed(Exception):
    """A run failed. The table shows the failure, and the comparison continues."""
