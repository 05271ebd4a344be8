"""snapshots.py FILE SENTENCE: runs the commands of one case in bash, and compares their output with the file.

A case is a line `## SENTENCE`. Commands follow after `$ `, each with its stderr, its stdout, and `? N` if the exit
status N is not 0. In the file `[..]` is any text within a line, and a line `...` any number of lines.

UPDATE=1 writes the output into the file where it differs. Put the wildcards back, and review the change like code.
"""

import difflib
import os
import re
import subprocess
import sys


def output(command):
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    status = [f"? {done.returncode}"] if done.returncode else []
    return [f"$ {command}", *done.stderr.splitlines(), *done.stdout.splitlines(), *status]


def is_expected(actual, expected):
    lines = [re.escape(line + "\n").replace(re.escape("[..]"), ".*") for line in expected]
    pattern = "".join(r"(?:.*\n)*?" if line == re.escape("...\n") else line for line in lines)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual))


def main(path, sentence):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    heading = f"## {sentence}\n"
    case = text.partition(heading)[2].partition("\n## ")[0].rstrip("\n")
    expected = case.splitlines()
    actual = [line for command in expected if command.startswith("$ ") for line in output(command[2:])]
    if is_expected(actual, expected):
        return 0
    print("\n".join(difflib.unified_diff(expected, actual, "expected", "seen", n=2, lineterm="")))
    if os.environ.get("UPDATE"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(heading + case, heading + "\n".join(actual)))
    return 1


sys.exit(main(*sys.argv[1:]))
