"""facts.py KEY...: prints values of flarena_stats_json of this process in one line. A dot separates nested keys.

Additional keys: mallctl (whether NVFlare would find it) and arenas_env.
"""

import ctypes
import json
import os
import sys


def facts():
    process = ctypes.CDLL(None)
    text = ctypes.create_string_buffer(1 << 16)
    process.flarena_stats_json(text, len(text))
    found = json.loads(text.value)
    found["mallctl"] = hasattr(process, "mallctl")
    found["arenas_env"] = os.environ.get("MALLOC_ARENA_MAX")
    return found


def pick(found, key):
    for part in key.split("."):
        found = found[part]
    return found


print(*(pick(facts(), key) for key in sys.argv[1:]))
