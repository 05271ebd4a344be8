"""The markers of hooks reach the log files of NVFlare's logging once, and no other handler.

markers_in_nvflares_log.py FOLDER
"""

import io
import json  # noqa: F401  # as NVFlare does
import logging
import os
import re
import sys

from contexts import ServerContext
from flarena._marking import mark
from flarena._native import shim as find_shim
from nvflare.apis.utils.event import fire_event_to_components

folder = sys.argv[1]


def fire(event="_round_started"):
    fire_event_to_components(event, [], ServerContext())


def file_handler(name, level=logging.NOTSET):
    handler = logging.FileHandler(os.path.join(folder, name))
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(name)s - %(levelname)s - %(message)s"))
    return handler


def lines(name):
    with open(os.path.join(folder, name)) as file:
        return file.read().splitlines()


root, console = logging.getLogger(), io.StringIO()
root.setLevel(logging.INFO)
root.addHandler(file_handler("log.txt"))
fire()
assert lines("log.txt") == [], "NVFlare's logging is not set up"

import nvflare.fuel.utils.log_utils  # noqa: E402, F401  # sets it up

root.addHandler(file_handler("error_log.txt", logging.ERROR))
root.addHandler(logging.StreamHandler(console))
fire()
root.setLevel(logging.WARNING)
fire()
root.setLevel(logging.INFO)
logging.getLogger("nvflare").propagate = False
fire()
(line,) = lines("log.txt")
assert line.startswith("nvflare.fuel.utils.mem_utils - INFO - [RSS] - s=server r=5 round_started: "), line
logging.getLogger("nvflare").propagate = True
fire("_before_aggregation")
fire("_after_aggregation")
memory = [line for line in lines("log.txt") if "[MEM]" in line]
assert len(memory) == 1 and re.fullmatch(
    r"nvflare.fuel.utils.mem_utils - INFO - \[MEM\] - s=server r=5"
    r"( (peak|live|free|cached|file|gpu|left|limit)=\d+\.\d)+ MB",
    memory[0],
), memory
mark(find_shim(), "after_aggregation", "Köln 1", 6)
marker, sizes = lines("log.txt")[-2:]
assert sizes.startswith(marker.replace("[RSS]", "[MEM]").partition(" r=")[0] + " r=6 "), (marker, sizes)
assert line.endswith(" MB") and lines("error_log.txt") == [] and console.getvalue() == ""
