"""Neither a fork nor the end of the interpreter fails while threads allocate."""

import os
import sys
import threading
import time

from flarena import _sites


def allocate():
    while True:
        bytes(2 << 20)


for _ in range(3):
    threading.Thread(target=allocate, daemon=True).start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        kept = bytes(3 << 20)
        os._exit('"python":true' not in _sites.request("who") or not kept)
    if os.waitpid(child, 0)[1]:
        sys.exit("a child failed")
time.sleep(0.2)
print("ends")
