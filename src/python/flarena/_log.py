"""Copies the markers of hooks to the log files of NVFlare, so that `grep RSS log.txt` finds them.

The line on stderr does not reach these files. The copy goes through NVFlare's logger for `[RSS]` lines to its file
handlers only, because a handler that writes to the terminal would repeat the line there. A trainer's line is not
copied: NVFlare already writes the stderr of a trainer to the log of its client.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# NVFlare configures logging with this module, and writes its own [RSS] lines with this logger.
_CONFIGURES_LOGGING = "nvflare.fuel.utils.log_utils"
_LOGGER = "nvflare.fuel.utils.mem_utils"


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
