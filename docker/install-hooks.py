"""Registers flarena's stage hooks with the Python that runs this script, while an image is built.

It writes the .pth file of the wheel into the site folder, with one more line: the path of the package. If the site
folder is not writable (the image's user is not root), it uses the user's site folder.
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
    start = os.path.join(HERE, "flarena-hooks.start")  # Python 3.15 and later read this file instead
    if os.path.exists(start):
        shutil.copy(start, folder)
    print(f"flarena: hooks for {sys.executable} in {folder}")


def main():
    for folder in (*site.getsitepackages()[:1], site.getusersitepackages()):
        try:
            return register(folder)
        except OSError as error:
            print(f"flarena: {folder}: {error.strerror}", file=sys.stderr)
    sys.exit(f"flarena: no site folder of {sys.executable} is writable, so the stage hooks cannot be installed")


if __name__ == "__main__":
    main()
