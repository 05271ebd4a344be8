"""Registers flarena's stage hooks with the Python that runs this, once, while an image is built.

A .pth file in the site folder, as the wheel installs, with one more line that says where the package
lies. Where the site folder may not be written (an image whose user is not root), the user's own is used.
"""

import os
import shutil
import site
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE_PARENT = os.path.join(HERE, "python")


def register(folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(HERE, "flarena-hooks.pth")) as hooks:
        lines = f"{PACKAGE_PARENT}\n{hooks.read()}"
    with open(os.path.join(folder, "flarena-hooks.pth"), "w") as target:
        target.write(lines)
    start = os.path.join(HERE, "flarena-hooks.start")  # Python 3.15 and later read this instead
    if os.path.exists(start):
        shutil.copy(start, folder)
    print(f"flarena: hooks for {sys.executable} in {folder}")


def main():
    for folder in (*site.getsitepackages()[:1], site.getusersitepackages()):
        try:
            return register(folder)
        except OSError as error:
            print(f"flarena: {folder}: {error.strerror}", file=sys.stderr)
    sys.exit(f"flarena: no site folder of {sys.executable} can be written")


if __name__ == "__main__":
    main()
