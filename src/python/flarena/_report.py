"""`flarena.report`: the HTML report of this process, for a notebook."""

from __future__ import annotations

import os
import sys

from ._api import stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 60  # the command reads a million markers in less


class Report(str):
    """A whole HTML page as a text. A notebook shows it in a frame."""

    def __repr__(self) -> str:
        return f"<flarena.report: a page of {len(self)} characters for a notebook or a file>"

    def _repr_html_(self) -> str:
        import html

        return f'<iframe srcdoc="{html.escape(self)}" width="100%" height="600" frameborder="0"></iframe>'


def report() -> Report:
    """The report of this process's markers so far, as one self-contained HTML page.

    In Jupyter the value of a cell is shown as the page; `pathlib.Path("report.html").write_text(...)` keeps it.

    Needs markers in a file (`flarena run --marker-file FILE`) and the `flarena` command, in the PATH or beside this
    Python. Without one of them, or if the command fails, the page says so. Never raises. It runs the command without
    the preload and returns after 60 s at the latest.
    """
    try:
        return Report(_page())
    except Exception as error:  # a report must not end the program
        return _explain(f"The report failed ({type(error).__name__}).")


def _page() -> str:
    path = stats().get("settings", {}).get("FLARENA_MARKER_FILE", "").replace("%p", str(os.getpid()))
    if not os.path.isfile(path):
        return _explain("This process writes no marker file. Start it with: flarena run --marker-file markers.jsonl")
    command = _command()
    if command is None:
        return _explain("The flarena command is neither in the PATH nor beside this Python.")
    import subprocess
    import tempfile

    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory(prefix="flarena-") as folder:
        markers, page = os.path.join(folder, "markers.jsonl"), os.path.join(folder, "report.html")
        with open(markers, "wb") as own:
            own.writelines(_own_lines(path))
        subprocess.run(
            [command, "report", "--html", page, markers],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
        with open(page, encoding="utf-8") as text:
            return text.read()


def _own_lines(path: str) -> Iterator[bytes]:
    """The markers of this process: several processes may write to one file."""
    own = b'"pid":%d,' % os.getpid()
    with open(path, "rb") as lines:
        yield from (line for line in lines if own in line)


def _command() -> str | None:
    from shutil import which

    return which("flarena") or which("flarena", path=os.path.dirname(sys.executable))


def _explain(sentence: str) -> Report:
    return Report(f"<!doctype html><meta charset=utf-8><title>flarena</title><p>{sentence}</p>\n")
