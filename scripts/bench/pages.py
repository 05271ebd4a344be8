"""Pages of 16 KB to 1 MB on request, for the runs of the contenders that are named after them. The switch is the whole
machine's: it is set around each run and put back, also when the run fails or is stopped."""

import contextlib
import os

LARGE_KB = 2048  # whoever asks gets the largest size on request: it must not be this one
SWITCH = "/sys/kernel/mm/transparent_hugepage/hugepages-{}kB/enabled"


def obstacle(kb):
    """Why this size cannot be set here; None when it can."""
    for size in (kb, LARGE_KB):
        if not os.path.exists(SWITCH.format(size)):
            return f"this kernel has no switch for pages of {size} KB (Linux 6.8 has)"
        if not os.access(SWITCH.format(size), os.W_OK):
            return f"the switch for pages of {size} KB is not ours to set"
    return None


@contextlib.contextmanager
def on_request(kb):
    """This size on `madvise`, those of 2 MB on `never`. 0: the machine as it is."""
    wanted = {LARGE_KB: "never", kb: "madvise"} if kb else {}
    before = {size: chosen(size) for size in wanted}
    try:
        for size, word in wanted.items():
            put(size, word)
        yield
    finally:
        for size, word in reversed(before.items()):
            put(size, word)


def chosen(kb):
    with open(SWITCH.format(kb)) as switch:
        text = switch.read()
    return text[text.index("[") + 1 : text.index("]")]


def put(kb, word):
    with open(SWITCH.format(kb), "w") as switch:
        switch.write(word)
