"""asks_memory_utils.py MODE: NVFlare's functions of the wheel, unmodified and not hooked, work with the library.

asks_memory_utils.py hooked: a cleanup gives memory back at once, although jemalloc's decay is off.
"""

import base64
import ctypes
import hashlib
import importlib.metadata
import sys

from nvflare.fuel.utils import memory_utils


def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def unmodified():
    for file in importlib.metadata.files("nvflare"):
        if str(file) == "nvflare/fuel/utils/memory_utils.py":
            digest = hashlib.sha256(file.locate().read_bytes()).digest()
            return base64.urlsafe_b64encode(digest).decode().rstrip("=") == file.hash.value
    return False


mode = sys.argv[1]
if mode != "hooked":
    assert unmodified() and not hasattr(memory_utils.cleanup_memory, "__wrapped__")
    assert hasattr(ctypes.CDLL(None), "flarena_trim"), "the preload is missing"
    assert memory_utils.get_allocator_type() == mode, memory_utils.get_allocator_type()
    assert memory_utils.try_malloc_trim() in (0, 1)

blocks = [bytearray(4000) for _ in range(50_000)]
pins = blocks[::5000]
full = rss()
del blocks
assert memory_utils.cleanup_memory() is None
if mode != "jemalloc":  # there NVFlare relies on the decay
    assert rss() < full - (150 << 20), (full, rss())
