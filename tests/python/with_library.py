import os
import sys

import flarena

mode = sys.argv[1]
assert flarena.loaded() is True
assert flarena.allocator() == flarena.get_allocator_type() == mode, (flarena.allocator(), flarena.get_allocator_type())
assert flarena.version()
stats = flarena.stats()
assert stats["allocator"] == mode and stats["pid"] == os.getpid() and stats["version"] == flarena.version(), stats
assert stats["rss_bytes"] > 1 << 20
