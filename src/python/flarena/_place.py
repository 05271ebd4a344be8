"""Where an event of NVFlare's happened: the site and the round, as its contexts tell them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def site_of(ctx: Any) -> str | None:
    """A client's name; the server calls itself after the project, so its two processes (SP, SJ) are "server"."""
    if (text(ctx.get_process_type()) or "").startswith("S"):
        return "server"
    return text(ctx.get_identity_name())


def round_of(ctx: Any) -> int | None:
    """A client's task carries its round in the headers of its data; the server keeps it in the context."""
    task_data = ctx.get_prop("__task_data__", None)
    headers = task_data.get("__headers__") if isinstance(task_data, dict) else None
    round = headers.get("current_round") if isinstance(headers, dict) else None
    return number(ctx.get_prop("current_round", None) if round is None else round)


def text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def number(value: Any) -> int | None:
    """A round as NVFlare gives it: an int, or a number of NumPy's or JSON's that means one."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None
