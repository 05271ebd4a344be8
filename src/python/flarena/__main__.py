"""`python -m flarena ...`: runs the command `flarena` with the same arguments."""

from __future__ import annotations

import os
import sys
from shutil import which


def main() -> None:
    command = which("flarena", path=os.path.dirname(sys.executable)) or which("flarena")
    if command is None:
        sys.exit("flarena: the flarena command is neither beside this Python nor in the PATH")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
