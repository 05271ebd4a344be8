def cleanup_memory(cuda_empty_cache=False):
    return ("cleaned", cuda_empty_cache)
