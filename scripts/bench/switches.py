"""Switches of the whole machine: set around a run and put back, also when the run fails or is stopped."""

import contextlib


@contextlib.contextmanager
def switched(wanted):
    """Each file of `wanted` says its word meanwhile."""
    before = {path: chosen(path) for path in wanted}
    try:
        for path, word in wanted.items():
            put(path, word)
        yield
    finally:
        for path, word in reversed(before.items()):
            put(path, word)


def chosen(path):
    """What the file says; of a list of words the one in brackets."""
    with open(path) as switch:
        text = switch.read().strip()
    return text[text.index("[") + 1 : text.index("]")] if "[" in text else text


def put(path, word):
    with open(path, "w") as switch:
        switch.write(word)
