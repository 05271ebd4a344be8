"""Medians and ratios of one result, for the tables."""

import statistics

from model import Column


def columns(result):
    return [Column(**fields) for fields in result["columns"]]


def failure(result, name):
    """The first failure of a contender, or None when all its runs completed."""
    for row in result["rounds"]:
        if "failed" in row[name]:
            return row[name]["failed"]
    return None


def median(result, name, key):
    # --only may leave out the peer that a contender is compared with.
    values = [value for row in result["rounds"] if (value := row.get(name, {}).get(key)) is not None]
    return statistics.median(values) if values else None


def peers(result):
    return [c["name"] for c in result["contenders"] if not c["ours"] and failure(result, c["name"]) is None]


def best_peer(result, column):
    """The peer with the best median in a column."""
    measured = {name: median(result, name, column.key) for name in peers(result)}
    measured = {name: value for name, value in measured.items() if value is not None}
    best = column.best(measured.values()) if measured else None
    return next((name for name, value in measured.items() if value == best), None)


def reference(result, column, name):
    """The peer that `name` is compared with: the best one of the column, or the one that the result names for it."""
    if result["references"]:
        return result["references"].get(name)
    return best_peer(result, column)


def ratio(result, column, name):
    """Value divided by the reference peer's value; None when one of them was not measured."""
    peer = reference(result, column, name)
    value, reference_value = median(result, name, column.key), median(result, peer, column.key) if peer else None
    return value / reference_value if value is not None and reference_value else None
