"""docs/pitfalls.md names for each story the tests that hold it: each is still in the suite that it is said to be in."""

import pathlib
import re
import sys

PAGE = pathlib.Path("docs/pitfalls.md")


def texts(suite):
    if suite == "unit":
        found = (path.read_text() for path in pathlib.Path("src").rglob("*.rs"))
        return [name for text in found for name in re.findall(r"#\[test\]\s+fn (\w+)\(", text)]
    return [path.read_text(errors="replace") for path in pathlib.Path("tests", suite).rglob("*") if path.is_file()]


def main():
    stories = re.findall(r"^\*\*.*?(?=^\*\*|^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    wrong = [] if stories else [f"{PAGE} has no stories"]
    for story in stories:
        held = re.findall(r'(\w+) "([^"]+)"', story.partition("\nHeld by ")[2])
        wrong += [] if held else [f"{story.splitlines()[0]}: no test holds it"]
        for suite, test in held:
            known = texts(suite)
            if not (test in known if suite == "unit" else any(test in text for text in known)):
                wrong.append(f"{PAGE}: no test of the suite {suite} says: {test}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
