"""The hooked cleanup_memory of NVFlare gives memory back at once, although jemalloc's decay is off."""

from nvflare.fuel.utils.memory_utils import cleanup_memory


def rss():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


blocks = [bytearray(4000) for _ in range(50_000)]
pins = blocks[::5000]
full = rss()
del blocks
cleanup_memory()
assert rss() < full - (150 << 20), (full, rss())
