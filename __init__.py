"""Makes `import flarena` in a folder beside this checkout import the package, if the checkout's folder has its name.

Python would otherwise import the folder as an empty namespace package.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

if __name__ == "flarena":
    folder = Path(__file__).parent / "src" / "python" / "flarena"
    spec = spec_from_file_location(__name__, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    sys.modules[__name__] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[__name__])
