"""Found by Python at start when a launcher puts this directory first in PYTHONPATH: turns flarena's
NVFlare hooks on, then runs the sitecustomize that this file hides, as if this one were not there.

Nothing else may live in this directory: it is first in sys.path, and would hide the program's modules.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec


def _activate() -> None:
    # The package is the directory above; its parent is in sys.path only while it is being found.
    parent = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, parent)
    try:
        import flarena._activate
    finally:
        sys.path.remove(parent)
    flarena._activate.activate()


def _next_sitecustomize() -> "ModuleSpec | None":
    """The spec of the first sitecustomize in sys.path that is no hook directory of ours, or None."""
    from importlib.machinery import PathFinder

    # Two installed flarenas would hand over to each other for ever: each notes that it had its turn.
    done = sys.__dict__.setdefault("_flarena_hook_directories", [])
    done.append(os.path.realpath(os.path.dirname(__file__)))
    rest = [entry for entry in sys.path if os.path.realpath(entry or ".") not in done]
    return PathFinder.find_spec("sitecustomize", rest)


def _chain() -> None:
    spec = _next_sitecustomize()
    if spec is None or spec.loader is None:
        return
    module = type(sys)("sitecustomize")
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)  # its exceptions pass: Python reports them as it always does


try:
    _activate()
except Exception as error:
    try:
        os.write(2, b"flarena: the Python hooks cannot be used (%s)\n" % type(error).__name__.encode())
    except OSError:
        pass
_chain()
