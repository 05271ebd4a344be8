"""Pages of 16 KB to 1 MB on request, for the runs of the contenders that are named after them."""

import os

from switches import switched

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


def on_request(kb):
    """This size on `madvise`, those of 2 MB on `never`. 0: the machine as it is."""
    wanted = {LARGE_KB: "never", kb: "madvise"} if kb else {}
    return switched({SWITCH.format(size): word for size, word in wanted.items()})
