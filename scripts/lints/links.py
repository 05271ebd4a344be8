"""Every relative link of the Markdown files leads to a file that git knows, every #anchor to a heading of it, and every
`path/like/this` that begins with a folder of the root to something that is there. Indented lines that are meant as code
follow an empty line: otherwise Markdown takes them for more of the prose before them."""

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
    """The names that a forge makes of headings: lower case, words joined by hyphens, no punctuation."""
    prose = re.sub(r"^```.*?^```", "", read(path), flags=re.MULTILINE | re.DOTALL) if path.endswith(".md") else ""
    heads = re.findall(r"^#+ +(.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def dead(page, known):
    for target in LINK.findall(CODE.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if path not in known and not any(name.startswith(path + "/") for name in known):
            yield f"{page}: {target}: no such file"
        elif anchor and anchor not in anchors(path):
            yield f"{page}: {target}: no such heading"


def gone(page, known):
    """Paths in backticks. `*` and `<name>` stand for anything; what is not of the root's folders is no path of ours."""
    folders = {name.partition("/")[0] for name in known if "/" in name}
    for path in PATH.findall(read(page)):
        if path.partition("/")[0] in folders:
            wanted = re.sub(r"\\\*|<[^>]*>", "[^/]+", re.escape(path.rstrip("/")))
            if not any(re.match(f"{wanted}(/|$)", name) for name in known):
                yield f"{page}: `{path}`: no such file"


def swallowed(page, _known):
    """Lines that are indented as code, right after prose. A list's items may have such lines."""
    prose = re.sub(
        r"^```.*?^```$", lambda block: "\n" * block.group().count("\n"), read(page), flags=re.MULTILINE | re.DOTALL
    )
    in_prose = False
    for number, line in enumerate(prose.splitlines(), 1):
        is_code = line.startswith("    ")
        if is_code and in_prose:
            yield f"{page}:{number}: an indented line right after prose is no code: {line.strip()}"
        in_prose = bool(line.strip()) and (in_prose or not is_code) and not re.match(r"\s*([-*+]|\d+[.)]) ", line)


def main():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    known = {name for name in listed.stdout.splitlines() if os.path.exists(name)}
    pages = [name for name in sorted(known) if name.endswith(".md")]
    found = [line for page in pages for check in (dead, gone, swallowed) for line in check(page, known)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
