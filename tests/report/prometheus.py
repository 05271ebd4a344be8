"""Checks a file against the text exposition format: each line is valid, each series and type occurs once."""

import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} ([-+0-9.eE]+)")

types, series = set(), set()
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
assert text.endswith("\n"), "no newline at the end"
for line in text.splitlines():
    if line.startswith("# TYPE "):
        name = line.split()[2]
        assert name not in types, f"type given twice: {name}"
        types.add(name)
    elif not line.startswith("# HELP "):
        match = SAMPLE.fullmatch(line)
        assert match, f"not a sample: {line}"
        assert match[1] in types, f"no type before: {line}"
        assert match.group(1, 2) not in series, f"given twice: {line}"
        series.add(match.group(1, 2))
        float(match[3])
assert "flarena_growth_bytes_per_round" in types
assert "flarena_last_marker_time_seconds" in types
assert any('site="a\\"b\\\\c"' in labels for _, labels in series), "the site with quotes is missing"
assert any('verdict="live_growth"' in labels for _, labels in series)
