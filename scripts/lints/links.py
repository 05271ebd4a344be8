"""Checks the Markdown files: relative links and anchors exist, and so do `paths/in/backticks` below a top-level folder.

Indented code must follow an empty line, or Markdown renders it as part of the paragraph before it.
Its commands are those of an installation.
"""

import os
import re
import subprocess
import sys

LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.-]+/[\w./*<>-]*)`")
CODE = re.compile(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(path):
    """The anchors that a forge generates for headings: lower case, hyphens for spaces, no punctuation."""
    prose = re.sub(r"^```.*?^```", "", read(path), flags=re.MULTILINE | re.DOTALL) if path.endswith(".md") else ""
    heads = re.findall(r"^#+ +(.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def dead_links(page, known):
    for target in LINK.findall(CODE.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if path not in known and not any(name.startswith(path + "/") for name in known):
            yield f"{page}: {target}: no such file"
        elif anchor and anchor not in anchors(path):
            yield f"{page}: {target}: no such heading"


def missing_paths(page, known):
    """Paths in backticks that begin with a top-level folder. `*` and `<name>` match any name."""
    folders = {name.partition("/")[0] for name in known if "/" in name}
    for path in PATH.findall(read(page)):
        if path.partition("/")[0] in folders:
            wanted = re.sub(r"\\\*|<[^>]*>", "[^/]+", re.escape(path.rstrip("/")))
            if not any(re.match(f"{wanted}(/|$)", name) for name in known):
                yield f"{page}: `{path}`: no such file"


def unseparated_code(page, _known):
    """Lines indented as code directly after prose. Items of a list may have such lines."""
    prose = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block.group().count("\n"), read(page), flags=re.MULTILINE | re.DOTALL
    )
    in_prose = False
    for number, line in enumerate(prose.splitlines(), 1):
        is_code = line.startswith("    ")
        if is_code and in_prose:
            yield f"{page}:{number}: an indented line right after prose is not rendered as code: {line.strip()}"
        in_prose = bool(line.strip()) and (in_prose or not is_code) and not re.match(r"\s*([-*+]|\d+[.)]) ", line)


def commands_of_a_checkout(page, _known):
    """Commands below target/, which only a checkout that was compiled has. An installation has `flarena`."""
    for command in re.findall(r"^ {4}target/.*", read(page), re.MULTILINE):
        yield f"{page}: an installation has no target/: {command.strip()}"


def main():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    known = {name for name in listed.stdout.splitlines() if os.path.exists(name)}
    pages = [name for name in sorted(known) if name.endswith(".md")]
    checks = (dead_links, missing_paths, unseparated_code, commands_of_a_checkout)
    found = [line for page in pages for check in checks for line in check(page, known)]
    return "\n".join(found) or None


if __name__ == "__main__":
    sys.exit(main())
