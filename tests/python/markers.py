"""Reads a marker file: each line must be a JSON object with the fields of every marker."""

import json


def read(path):
    with open(path, encoding="utf-8") as lines:
        markers = [json.loads(line) for line in lines]
    for marker in markers:
        assert marker["v"] == 1 and marker["pid"] > 0 and marker["stage"], marker
        assert "site" in marker and "round" in marker and marker["rss_bytes"] > 0, marker
    return markers


def own(path):
    """The markers of Python code: all but those that the library writes by itself."""
    return [marker for marker in read(path) if marker["stage"] not in ("load", "exit", "periodic")]
