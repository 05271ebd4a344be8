"""trim_command.py COMMAND: runs `flarena trim` for this process, whose Arrow pool keeps memory.

The request needs this program's main thread.
"""

import json
import os
import subprocess
import sys
import time

import memory
import pyarrow
import pyarrow.compute as compute

model = bytes(80 << 20)  # never touched; large enough to start the governor
columns = [compute.random(2_000_000) for _ in range(12)]
del columns
pool = pyarrow.default_memory_pool()
assert pool.backend_name != "system", pool.backend_name
held = memory.resident()
trim = subprocess.Popen([sys.argv[1], "trim", "--json", str(os.getpid())], stdout=subprocess.PIPE)
while trim.poll() is None:
    time.sleep(0.02)
answer = json.load(trim.stdout)
left = memory.resident()
assert held - left > 100, (held, left, answer)
