"""Copies the markers of hooks to the log files of NVFlare, so that `grep RSS log.txt` finds them.

The line on stderr does not reach these files. The copy goes through NVFlare's logger for `[RSS]` lines to its file
handlers only, because a handler that writes to the terminal would repeat the line there. A trainer's line is not
copied: NVFlare already writes the stderr of a trainer to the log of its client.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._native import Shim

# NVFlare configures logging with this module, and writes its own [RSS] lines with this logger.
_CONFIGURES_LOGGING = "nvflare.fuel.utils.log_utils"
_LOGGER = "nvflare.fuel.utils.mem_utils"


# The name of a size in a [MEM] line -> the statistic.
_SIZES = {
    "live": "live_bytes",
    "free": "retained_bytes",
    "cached": "recycled_bytes",
    "file": "file_bytes",
    "gpu": "gpu_reserved_bytes",
}
# The highest resident size at the previous [MEM] line.
_last_highest = 0


def write_memory(shim: Shim, marker: str) -> None:
    """Write the sizes of this process at the end of a round: `[MEM] TR s=site-1 r=3 peak=812.0 live=402.1 MB`.

    Process, site and round are those of the marker, an [RSS] line, as the report joins lines with the same names.
    A trainer writes to stderr, which its client's log contains. May run handlers of the program, as copy_to_log.
    """
    json = sys.modules.get("json")  # without an import: a finalizer may mark in the middle of one
    if json is None or _CONFIGURES_LOGGING not in sys.modules:
        return
    global _last_highest
    stats = json.loads(shim.stats_json())
    highest = stats.get("hwm_bytes") or 0
    # The kernel's highest size is that of this round only if it rose in this round.
    sizes = {"peak": highest if highest > _last_highest else stats.get("rss_bytes")}
    sizes |= {name: stats.get(key) for name, key in _SIZES.items()}
    _last_highest = max(highest, _last_highest)
    limit, used = stats.get("cgroup_limit_bytes"), stats.get("cgroup_bytes")
    if limit is not None and used is not None:
        sizes |= {"left": max(limit - used, 0), "limit": limit}
    text = " ".join(f"{name}={size / (1 << 20):.1f}" for name, size in sizes.items() if size is not None)
    _, proc, site, round, _ = marker.split(" ", 4)
    line = f"[MEM] {proc} {site} {round} {text} MB"
    if proc == "TR":
        os.write(2, line.encode() + b"\n")
    else:
        copy_to_log(line)


def copy_to_log(line: str) -> None:
    """May run handlers of the program. Never call it in a signal handler."""
    if not line or line.startswith("[RSS] TR") or _CONFIGURES_LOGGING not in sys.modules:
        return
    logging = sys.modules["logging"]
    logger = logging.getLogger(_LOGGER)
    if not logger.isEnabledFor(logging.INFO):
        return
    handlers = [handler for handler in _file_handlers(logging, logger) if handler.level <= logging.INFO]
    record = logger.makeRecord(_LOGGER, logging.INFO, __file__, 0, line, (), None) if handlers else None
    if record is not None and logger.filter(record):
        for handler in handlers:
            handler.handle(record)


def _file_handlers(logging: Any, logger: Any) -> list[Any]:
    """The file handlers that a record of this logger reaches."""
    found = []
    while logger is not None:
        found += [handler for handler in logger.handlers if isinstance(handler, logging.FileHandler)]
        logger = logger.parent if logger.propagate else None
    return found
