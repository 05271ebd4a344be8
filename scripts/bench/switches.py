"""Sets kernel switches during a run, and restores them also when the run fails or is stopped."""

import contextlib


@contextlib.contextmanager
def switched(wanted):
    """Writes the words of `wanted` (path: word) to their files and restores the previous ones at the end."""
    before = {path: chosen(path) for path in wanted}
    try:
        for path, word in wanted.items():
            write(path, word)
        yield
    finally:
        for path, word in reversed(before.items()):
            write(path, word)


def chosen(path):
    """The file's word, or the bracketed one of a list."""
    with open(path) as switch:
        text = switch.read().strip()
    return text[text.index("[") + 1 : text.index("]")] if "[" in text else text


def write(path, word):
    with open(path, "w") as switch:
        switch.write(word)
