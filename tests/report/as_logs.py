"""Prints the markers of FILE as lines of NVFlare's logs: [RSS] for each, and [MEM] after each LAST_STAGE.

as_logs.py FILE LAST_STAGE
"""

import json
import sys

MB = 1 << 20
SIZES = {"live": "live_bytes", "free": "retained_bytes", "cached": "recycled_bytes", "file": "file_bytes"}

with open(sys.argv[1]) as file:
    markers = [json.loads(line) for line in file]
for marker in markers:
    process = f"{marker['proc']} s={marker['site']} r={marker['round']}"
    print(f"2026-11-20 06:32:47,250 - INFO - [RSS] {process} {marker['stage']}: {marker['rss_bytes'] / MB:.1f} MB")
    if marker["stage"] == sys.argv[2]:
        sizes = " ".join(f"{name}={(marker[key] or 0) / MB:.1f}" for name, key in SIZES.items())
        print(f"2026-11-20 06:32:47,260 - INFO - [MEM] {process} {sizes} MB")
