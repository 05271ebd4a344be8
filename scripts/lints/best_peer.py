"""docs/benchmarks.md compares with the peer that is best in each column: bold marks and ratios are worked out again."""

import re
import sys

PAGE = "docs/benchmarks.md"
ROUNDED = 0.5  # half a digit of what is printed: 3 MB over 2 MB may be 1.63 x


def tables(text):
    """(title, names of the columns, rows) of every table of contenders that compares them, whatever its letter."""
    for title, lines in re.findall(r"^(.*)\n\n((?:\|.*\n)+)", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
        compares = re.match(r"\*\*(\w+)\. ", title) or "**" in lines or " x)" in lines
        if rows[0][0] == "contender" and compares:
            yield title.strip("*"), rows[0], rows[2:]


def value(cell):
    """The number of a cell, and how far it may be from the one that was measured; None where a run failed."""
    digits = re.match(r"\**(\d+(?:\.(\d+))?)", cell)
    return digits and (float(digits[1]), ROUNDED * 10 ** -len(digits[2] or ""))


def faults(title, head, rows):
    peers = [row for row in rows if not row[0].startswith("flarena")]
    ours = [row for row in rows if row[0].startswith("flarena")]
    for column, name in enumerate(head[1:], 1):
        known = [row[column] for row in peers if value(row[column])]
        bold = [cell for cell in (row[column] for row in peers) if cell.startswith("**")]
        if not known or "bare)" in name:
            continue
        more = any(word in name for word in ("ops/s", ">=", "largest"))
        best = (max if more else min)(known, key=lambda cell: value(cell)[0])
        if not bold or any(value(cell) != value(best) for cell in bold):
            yield f"{title}: {name}: bold is {bold}, the best is {best}"
        for row in ours:
            ratio = re.search(r"\(([\d.]+) x\)", row[column])
            if not ratio or not value(row[column]):
                continue
            (mine, mine_off), (theirs, theirs_off) = value(row[column]), value(best)
            low = (mine - mine_off) / (theirs + theirs_off) - 0.005
            high = (mine + mine_off) / max(theirs - theirs_off, 1e-9) + 0.005
            if not low <= float(ratio[1]) <= high:
                yield f"{title}: {name}: {row[0]} is {mine / theirs:.2f} x of {best}, the table says {ratio[1]}"


def main():
    with open(PAGE, encoding="utf-8") as file:
        found = list(tables(file.read()))
    wrong = [line for table in found for line in faults(*table)] or ([] if found else [f"{PAGE} has no tables"])
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
