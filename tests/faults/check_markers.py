"""check_markers.py FILE [AT_LEAST]: fails unless every line of the file is a marker and there are at least so many."""

import json
import sys

with open(sys.argv[1], "rb") as markers:
    lines = markers.read().split(b"\n")
if lines.pop() != b"":
    sys.exit("the last line has no line end")
# A line of spaces stands for one that was written in part.
lines = [line for line in lines if line.strip(b" ")]
markers_read = 0
for number, line in enumerate(lines, 1):
    try:
        marker = json.loads(line)
    except ValueError as error:
        sys.exit(f"line {number} does not parse: {error}: {line[:200]!r}")
    if marker.get("kind") in ("stack", "sites"):  # the stress program may turn sites on
        continue
    if "stage" not in marker or "pid" not in marker:
        sys.exit(f"line {number} is not a marker: {line[:200]!r}")
    markers_read += 1
if markers_read < int(sys.argv[2] if len(sys.argv) > 2 else 0):
    sys.exit(f"{markers_read} markers in the file, {sys.argv[2]} were reported written")
