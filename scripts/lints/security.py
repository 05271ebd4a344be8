"""SECURITY.md names every request of the control channel and every file of /proc, /sys and the control groups that the
library reads."""

import pathlib
import re
import sys

PAGE = pathlib.Path("SECURITY.md")
SOURCES = pathlib.Path("src")
OTHER_PROGRAMS = ("src/cli", "src/python")
FILE = re.compile(r'"(/(?:proc|sys)/[^"\\]+|(?:memory|cpu)\.[a-z_.]+)')


def library_code(path):
    """A source file without its comments and unit tests."""
    text = path.read_text().partition("#[cfg(test)]")[0]
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def requests():
    parser = next(SOURCES.rglob("governor/control.rs"))
    return set(re.findall(r'b"([a-z]+) ?"', library_code(parser)))


def files():
    sources = [path for path in SOURCES.rglob("*.rs") if not path.as_posix().startswith(OTHER_PROGRAMS)]
    return {name for path in sources if not path.stem.endswith("tests") for name in FILE.findall(library_code(path))}


def is_named(file, page):
    """A file name that the source completes at run time ends in a hyphen."""
    return f"`{file}" + ("" if file.endswith("-") else "`") in page


def main():
    page = PAGE.read_text()
    rows = set(re.findall(r"^\| `([a-z]+)", page, re.MULTILINE))
    wrong = [] if requests() and files() else ["security.py finds no request or no file in the sources"]
    wrong += [f"{PAGE} has no row for the request {word}" for word in sorted(requests() - rows)]
    unnamed = [name for name in sorted(files()) if not is_named(name, page)]
    wrong += [f"{PAGE} does not name {name}, which the library reads" for name in unnamed]
    return "\n".join(wrong) or None


if __name__ == "__main__":
    sys.exit(main())
