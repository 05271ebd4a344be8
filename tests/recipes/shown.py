"""shown.py FOLDER PAGE...: writes the files of Markdown pages to a folder.

A file is an indented block whose first line is a comment with its name or path, such as `# /etc/x/a.service`.
"""

import os
import re
import sys

NAME = re.compile(r"# (?:/\S+/)?([\w.-]+\.(?:yaml|service|timer|py)|flarena)$")

folder, *pages = sys.argv[1:]
for page in pages:
    with open(page, encoding="utf-8") as file:
        lines = file.read().splitlines()
    target = None
    for line, before in zip(lines, ["", *lines], strict=False):
        if line and not line.startswith("    "):
            target = None
        elif not before and (named := NAME.match(line.strip())):
            target = os.path.join(folder, named[1])
        if target:
            with open(target, "a", encoding="utf-8") as file:
                file.write(line[4:] + "\n")
