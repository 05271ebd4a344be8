"""The statistics of this process's governor."""

import ctypes
import json


def governor():
    text = ctypes.create_string_buffer(1 << 16)
    ctypes.CDLL(None).flarena_stats_json(text, len(text))
    return json.loads(text.value)["governor"]
