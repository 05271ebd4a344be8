"""Every SAFETY comment states the invariant that makes its block sound, not a reference to another comment."""

import pathlib
import re
import sys

COMMENT = re.compile(r"// SAFETY:(.*(?:\n\s*//(?!/).*)*)")
REFERENCE_ONLY = re.compile(
    r"\bas (above|before)\b|\bsame contract\b|\bby contract\b|\bfunction's own contract\b"
    # Allowed: the invariant first, then its source ("NUL-terminated by this function's contract").
    r"|^(the same\b|as \w+\.$|(the caller keeps )?(this|the) function's contract)",
    re.IGNORECASE,
)


def findings(name, text):
    for comment in COMMENT.finditer(text):
        reason = re.sub(r"\s*\n\s*//\s*", " ", comment[1]).strip()
        if REFERENCE_ONLY.search(reason):
            line = text.count("\n", 0, comment.start()) + 1
            yield f"{name}:{line}: SAFETY states no invariant: {reason}"


def main():
    paths = (path for folder in ("src", "fuzz") for path in sorted(pathlib.Path(folder).rglob("*.rs")))
    found = [line for path in paths for line in findings(path, path.read_text(encoding="utf-8"))]
    print("\n".join(found), end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
