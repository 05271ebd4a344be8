"""If the self-check fails, sites stay off and one line says so. A wrong layout does not crash."""

import json
import sys

from flarena import _frame_check, _sites

if sys.argv[1] == "other_frames":
    _frame_check._frames_of_python = lambda frame: ["elsewhere.py\t1\tf"]
elif sys.argv[1] == "unknown_version":
    sys.hexversion = 0x03630000
elif sys.argv[1] == "other_implementation":
    sys.implementation.name = "pypy"
else:  # the layout of another version, whose memory is read by a system call
    _sites._bind()
    for minor in (9, 10, 11, 12):
        if minor != sys.version_info[1]:
            _sites.request(f"prepare {3 << 8 | minor}")
            break
    print("differs" if _sites._check() else "agrees")
    sys.exit()
_sites.start()
who = json.loads(_sites.request("who"))
print(who["on"], who["python"], who["reason"] is not None)
