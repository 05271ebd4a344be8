"""Shared by the programs whose stages are compared."""

import json
import os


def print_markers():
    """Prints site, round and stage of each marker. On a slow machine the governor adds periodic ones."""
    with open(os.environ["FLARENA_MARKER_FILE"]) as lines:
        for marker in map(json.loads, lines):
            if marker["stage"] != "periodic":
                print(marker["site"], marker["round"], marker["stage"])
