# ruff: noqa: F821
"""The start of allocation sites in a running process.

The library runs this file as text, after `_safety.py` and `_frame_check.py`, whose names it uses.
"""


def start_late(address: int) -> None:
    """Check the frames, then let the library read them.

    `address` is that of its function flarena_sites. The program has imported ctypes and threading. Raises only
    exceptions of the program.
    """
    ctypes = sys.modules["ctypes"]

    class Ask(ctypes._CFuncPtr):  # ctypes.CFUNCTYPE uses the program's builtins
        _flags_ = ctypes._FUNCFLAG_CDECL
        _restype_ = ctypes.c_int
        _argtypes_ = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)

    ask = Ask(address)
    try:
        reason = _obstacle_to_late_start()
        if reason is None:
            reason = disagreement(Comparison(ask, (ctypes.c_char * FRAMES_BYTES)()), with_thread=False)
    except BaseException as error:
        reason = f"the check of its frames failed ({type(error).__name__})"
        if belongs_to_program(error):
            ask(b"refuse " + reason.encode(), None, 0)
            raise
    if reason:
        ask(b"refuse " + reason.encode("utf-8", "replace"), None, 0)
        return
    import atexit

    # The interpreter frees the states of its threads when it ends.
    atexit.register(ask, b"stop", None, 0)
    ask(b"start", None, 0)


def _obstacle_to_late_start() -> "str | None":
    if _is_ending() or _is_in_signal_handler():
        return "its main thread ends, or runs a signal handler: try again"
    return obstacle_to_reading_frames()
