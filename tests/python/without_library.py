import flarena

assert flarena.loaded() is False
assert flarena.version() is None
assert flarena.allocator() == flarena.get_allocator_type() == "glibc"
assert flarena.mark("stage", "site-1", 3) is False
assert flarena.trim() in (0, 1) and flarena.try_malloc_trim() in (0, 1)
assert flarena.cleanup_memory() is None
stats = flarena.stats()
assert stats["version"] is None and stats["owner"] is False
assert 1 << 20 < stats["rss_bytes"] <= stats["hwm_bytes"]
assert stats["anon_bytes"] + stats["file_bytes"] <= stats["rss_bytes"]
