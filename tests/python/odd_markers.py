import os

import flarena
import markers

path = os.environ["FLARENA_MARKER_FILE"]
assert flarena.mark("plain") and flarena.mark("placed", "site-1", 3) and flarena.mark("first", site="site-2", round=0)
assert flarena.mark("negative", None, -5) and flarena.mark("huge", None, 1 << 80)
odd = ['quote " and \\', "line\nbreak", "nul\0byte", "surrogate \udcff", "é漢🙂", "x" * (1 << 20)]
for name in odd:
    assert flarena.mark(name, name, 1)
seen = markers.own(path)
places = [(m["stage"], m["site"], m["round"]) for m in seen]
assert places[:3] == [("plain", None, None), ("placed", "site-1", 3), ("first", "site-2", 0)], places
assert places[3:5] == [("negative", None, None), ("huge", None, None)], places
assert len(places) == 5 + len(odd)
assert places[5][0] == odd[0] and places[6][0] == odd[1] and places[9][1] == odd[4], places
assert len(places[10][0]) <= 128
assert all(m["pid"] == os.getpid() for m in seen)
