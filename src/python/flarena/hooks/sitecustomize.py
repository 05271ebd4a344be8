"""Turns flarena's hooks on, then runs the sitecustomize that this file shadows.

Python imports this file at start when a launcher puts its directory first on PYTHONPATH. The directory
must contain no other file: it is first on sys.path and would shadow the program's modules.
"""

import os
import sys
from _frozen_importlib_external import PathFinder  # importlib has it, too, but Python has not loaded that yet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def _activate() -> None:
    from _frozen_importlib import _find_spec, _load  # type: ignore[attr-defined]

    # The package is the parent directory. It is not imported here: the program seldom needs it.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name = "flarena._activate"
    module = sys.modules.get(name)
    if module is None:
        spec = _find_spec(name, [package])
        if spec is None:
            raise ModuleNotFoundError(name)
        module = _load(spec)
    module.activate()


def _next_sitecustomize() -> "ModuleSpec | None":
    """The first sitecustomize on sys.path outside of flarena's hook directories, or None."""
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
        os.write(
            2,
            b"flarena: the Python hooks cannot be used (%s); the program continues without them\n"
            % type(error).__name__.encode(),
        )
    except OSError:
        pass
_run_next()
