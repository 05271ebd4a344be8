"""option.py NAME[:TYPE]...: prints jemalloc's effective options, read with mallctl. TYPE is z (default), b, u or s.

A name with a dot is a whole mallctl name."""

import ctypes
import sys

process = ctypes.CDLL(None)
for name in sys.argv[1:]:
    name, _, kind = name.partition(":")
    value = {"b": ctypes.c_bool, "s": ctypes.c_char_p, "u": ctypes.c_uint}.get(kind, ctypes.c_ssize_t)()
    size = ctypes.c_size_t(ctypes.sizeof(value))
    path = name if "." in name else f"opt.{name}"
    error = process.mallctl(path.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    assert error == 0, (name, error)
    text = value.value.decode() if kind == "s" else value.value
    print(f"{name}:{text}")
