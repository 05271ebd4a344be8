"""SECURITY.md names every request of the control channel, and every file of the kernel that the library reads."""

import pathlib
import re
import sys

PAGE = pathlib.Path("SECURITY.md")
REQUESTS = pathlib.Path("src/shim/governor/request.rs")
FILE = re.compile(r'"(/(?:proc|sys)/[^"\\]+|(?:memory|cpu)\.[a-z_.]+)')


def product(path):
    """A source without its comments and tests."""
    text = path.read_text().partition("#[cfg(test)]")[0]
    return re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)


def requests():
    return set(re.findall(r'b"([a-z]+) ?"', product(REQUESTS)))


def files():
    sources = [path for folder in ("src/shim", "src/shared") for path in pathlib.Path(folder).rglob("*.rs")]
    return {name for path in sources if not path.stem.endswith("tests") for name in FILE.findall(product(path))}


def main():
    page = PAGE.read_text()
    rows = set(re.findall(r"^\| `([a-z]+)", page, re.MULTILINE))
    wrong = [] if requests() and files() else ["no request or no file found: the sources look different now"]
    wrong += [f"{PAGE} has no row for the request {word}" for word in sorted(requests() - rows)]
    # A name that is only begun in the source ends in a hyphen.
    wrong += [
        f"{PAGE} does not name {name}, which the library reads"
        for name in sorted(files())
        if f"`{name}" + ("" if name.endswith("-") else "`") not in page
    ]
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
