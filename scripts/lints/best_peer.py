"""docs/benchmarks.md compares with the peer that is best in each column: bold marks and ratios are worked out again."""

import re
import sys

PAGE = "docs/benchmarks.md"
ROUNDED = 0.5  # half a digit of what is printed: 3 MB over 2 MB may be 1.63 x


def tables(text):
    for title, lines in re.findall(r"^\*\*((?:[a-f]|micro)\. .*?)\*\*.*\n\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
        yield title, rows[0], rows[2:]


def value(cell):
    """The number of a cell, and how far it may be from the one that was measured."""
    digits = re.match(r"\**(\d+(?:\.(\d+))?)", cell)
    return float(digits[1]), ROUNDED * 10 ** -len(digits[2] or "")


def faults(title, head, rows):
    peers = [row for row in rows if not row[0].startswith("flarena")]
    ours = [row for row in rows if row[0].startswith("flarena")]
    for column, name in enumerate(head[1:], 1):
        if not peers or "bare)" in name:
            continue
        more = "ops/s" in name or ">=" in name
        best = (max if more else min)((row[column] for row in peers), key=lambda cell: value(cell)[0])
        bold = [row[column] for row in peers if row[column].startswith("**")]
        if not bold or value(bold[0]) != value(best):
            yield f"{title}: {name}: bold is {bold}, the best is {best}"
        for row in ours:
            ratio = re.search(r"\(([\d.]+) x\)", row[column])
            (mine, mine_off), (theirs, theirs_off) = value(row[column]), value(best)
            low = (mine - mine_off) / (theirs + theirs_off) - 0.005
            high = (mine + mine_off) / max(theirs - theirs_off, 1e-9) + 0.005
            if ratio and not low <= float(ratio[1]) <= high:
                yield f"{title}: {name}: {row[0]} is {mine / theirs:.2f} x of {best}, the table says {ratio[1]}"


def main():
    with open(PAGE, encoding="utf-8") as file:
        found = list(tables(file.read()))
    wrong = [line for table in found for line in faults(*table)] or ([] if found else [f"{PAGE} has no tables"])
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
