"""Turns flarena's hooks on, then runs the sitecustomize that this file shadows.

Python imports this file at start when a launcher puts its directory first on PYTHONPATH. The directory
must contain no other file: it is first on sys.path and would shadow the program's modules.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def _activate() -> None:
    # The package is the parent directory. Its own parent is on sys.path only during this import.
    parent = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, parent)
    try:
        import flarena._activate
    finally:
        sys.path.remove(parent)
    flarena._activate.activate()


def _next_sitecustomize() -> "ModuleSpec | None":
    """The first sitecustomize on sys.path outside of flarena's hook directories, or None."""
    # importlib.machinery has the same class, but Python has not loaded it yet.
    from _frozen_importlib_external import PathFinder

    # Two installed copies of flarena would find each other for ever. Each records its directory, once.
    done = sys.__dict__.setdefault("_flarena_hook_directories", [])
    done.append(os.path.realpath(os.path.dirname(__file__)))
    for entry in sys.path:
        spec: ModuleSpec | None = PathFinder.find_spec("sitecustomize", [entry])
        if spec is not None and spec.loader and os.path.realpath(entry or ".") not in done:
            return spec
    return None


def _run_next() -> None:
    spec = _next_sitecustomize()
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # its exceptions pass, and Python reports them


try:
    _activate()
except Exception as error:
    try:
        os.write(2, b"flarena: the Python hooks cannot be used (%s)\n" % type(error).__name__.encode())
    except OSError:
        pass
_run_next()
