"""Every SAFETY comment says the fact that makes it true: it does not point to another comment or to a contract."""

import pathlib
import re
import sys

COMMENT = re.compile(r"// SAFETY:(.*(?:\n\s*//(?!/).*)*)")
EMPTY = re.compile(
    r"\bas (above|before)\b|\bsame contract\b|\bby contract\b|\bfunction's own contract\b"
    # A contract that is named behind its fact ("NUL-terminated by this function's contract") is the fact's source.
    r"|^(the same\b|as \w+\.$|(the caller keeps )?(this|the) function's contract)",
    re.IGNORECASE,
)


def findings(name, text):
    for comment in COMMENT.finditer(text):
        said = re.sub(r"\s*\n\s*//\s*", " ", comment[1]).strip()
        if EMPTY.search(said):
            line = text.count("\n", 0, comment.start()) + 1
            yield f"{name}:{line}: SAFETY says no fact: {said}"


def main():
    paths = (path for folder in ("src", "models", "fuzz") for path in sorted(pathlib.Path(folder).rglob("*.rs")))
    found = [line for path in paths for line in findings(path, path.read_text(encoding="utf-8"))]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
