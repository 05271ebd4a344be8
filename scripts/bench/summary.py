"""Medians and ratios of one result: the arithmetic that table and chart share."""

import statistics

from model import Column


def columns(result):
    return [Column(**fields) for fields in result["columns"]]


def failure(result, name):
    """The first failure of a contender, or None when each of its runs came to an end."""
    for row in result["rounds"]:
        if "failed" in row[name]:
            return row[name]["failed"]
    return None


def median(result, name, key):
    values = [row[name][key] for row in result["rounds"] if row[name].get(key) is not None]
    return statistics.median(values) if values else None


def spread(result, name, key):
    """Half the distance between the extreme runs over their median: how far one run can be trusted."""
    values = [row[name][key] for row in result["rounds"] if row[name].get(key) is not None]
    middle = statistics.median(values) if values else 0
    return (max(values) - min(values)) / 2 / middle if middle else 0


def peers(result):
    return [c["name"] for c in result["contenders"] if not c["ours"] and failure(result, c["name"]) is None]


def best_peer(result, column):
    """The peer that is best in a column, by median."""
    measured = {name: median(result, name, column.key) for name in peers(result)}
    measured = {name: value for name, value in measured.items() if value is not None}
    best = column.best(measured.values()) if measured else None
    return next((name for name, value in measured.items() if value == best), None)


def reference(result, column, name):
    """What `name` is compared with in a column: the peer that is best in that very column, or, where a result
    names references (what a layer costs), the same allocator without the layer."""
    if result["references"]:
        return result["references"].get(name)
    return best_peer(result, column)


def ratio(result, column, name):
    """Value over the reference peer's value; None when one of them was not measured."""
    peer = reference(result, column, name)
    ours, theirs = median(result, name, column.key), median(result, peer, column.key) if peer else None
    return ours / theirs if ours is not None and theirs else None


def verdict(result, column, name):
    """True when a goal is met, False when missed, None when there is nothing to judge."""
    value = median(result, name, column.key)
    if column.limit is not None:
        return None if value is None else value <= column.limit
    share = ratio(result, column, name)
    return None if share is None or column.goal is None else column.met(share)
