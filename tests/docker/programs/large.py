"""Allocates and frees large blocks, and prints a line once the governor runs and their memory went back."""

from library import becomes_true, process, stats, touched

BLOCK_BYTES = 40 << 20


def is_idle_again():
    now = stats()
    resident = now["rss_bytes"] or 0  # unknown without /proc
    return now["governor"]["running"] and resident < BLOCK_BYTES


for _ in range(5):
    for block in touched(3, BLOCK_BYTES):
        process.free(block)
if not becomes_true(is_idle_again, 60):
    raise SystemExit(f"no idle memory went back: {stats()}")
print("large blocks came and went")
