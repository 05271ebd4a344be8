"""Sets the system's policy for pages of 16 KB to 1 MB during a run, and restores it if the run fails or is stopped."""

import contextlib
import os

LARGE_KB = 2048  # a program gets the largest offered size, so this one is switched off
SWITCH = "/sys/kernel/mm/transparent_hugepage/hugepages-{}kB/enabled"


def obstacle(kb):
    """Why this size cannot be set, or None."""
    for size in (kb, LARGE_KB):
        if not os.path.exists(SWITCH.format(size)):
            return f"this kernel has no switch for pages of {size} KB (Linux 6.8 has)"
        if not os.access(SWITCH.format(size), os.W_OK):
            return f"the switch for pages of {size} KB is not writable"
    return None


def on_request(kb):
    """This size on `madvise` and 2 MB on `never`. 0 changes nothing."""
    wanted = {LARGE_KB: "never", kb: "madvise"} if kb else {}
    return switched({SWITCH.format(size): word for size, word in wanted.items()})


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
