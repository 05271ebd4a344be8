"""Gives the clients of NVFlare's simulator another number of arenas than the server, as separate machines have.

The simulator's process is the server and starts the clients. Its own malloc has read MALLOC_ARENA_MAX already.
"""

import os
import sys

if any("simulator.simulator" in argument for argument in sys.orig_argv):
    os.environ["MALLOC_ARENA_MAX"] = os.environ["BENCH_CLIENT_ARENAS"]
