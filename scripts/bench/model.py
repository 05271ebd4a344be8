"""Data types of a comparison: columns and variants of a workload."""

from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Column:
    """One measured quantity."""

    key: str
    title: str
    better: str = "less"  # "less" or "more"
    digits: int = 0

    def best(self, values):
        return min(values) if self.better == "less" else max(values)


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
