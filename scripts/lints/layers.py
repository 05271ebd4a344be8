"""Checks that each crate's files and folders use only those below them. The compiler checks the crates.

    scripts/lints/layers.py    exits 1 if a file uses a layer above its own

A layer is a file or a folder at the top of a crate. A use is a path from the root of the crate: `crate::x`, or as many
`super::` as the file is deep. Tests and macros may stand anywhere.
"""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# From top to bottom.
LAYERS = {
    "src/cli": """
        main manual compare doctor top report run who trim stats completions control output library proc
        units exit
    """,
    "src/shim": """
        lib boot exports fork governor report garbage python abi launch at_limit memory_limit channel backends pools
    """,
    "src/sites": "lib heap sampler interpreter table texts walk lines intern layout memory",
    "src/recycler": "lib api ops state os policy core",
    "src/sys": """
        lib identity limits thread abort clock headroom owner seccomp config env unmap_hooks sync loader
        attention proc io time errno
    """,
    "src/shared": """
        lib sites marker settings huge_pages role malloc_conf values defaults parse backoff cgroup kernel_path pools
        python_line stages fnv system_error
    """,
}
# The loader and the program call these, and no other layer may.
ENTRIES = ("boot", "exports")

COMMENT_OR_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""",
    re.DOTALL,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\](?:\s*#\[[^\]]*\])*[^;{]*[;{]")
NOT_A_LAYER = re.compile(r"(?:^|[/_])(?:tests?|testing|fuzz|scratch|build)(?:\.rs$|/)")


def blanked(text):
    """The text without its lines' content."""
    return re.sub(r"[^\n]", " ", text)


def code_of(source):
    """The source with comments, texts and tests blanked; each line keeps its number."""
    code = COMMENT_OR_TEXT.sub(lambda found: blanked(found[0]), source)
    while found := TEST_ITEM.search(code):
        end = found.end() if found[0].endswith(";") else closing_brace(code, found.end() - 1)
        code = code[: found.start()] + blanked(code[found.start() : end]) + code[end:]
    return code


def closing_brace(code, opening):
    """The position after the brace that closes the one at `opening`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(code, opening):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    return len(code)


def names_at_root(code, depth):
    """(name, position) of each path that begins at the root of the crate."""
    for found in re.finditer(r"(?<![\w:])(?:\$?crate::|(?:super::)+)", code):
        if "crate" not in found[0] and found[0].count("super") < depth:
            continue
        position = found.end()
        if code[position] != "{":
            yield re.match(r"\w*!?", code[position:])[0], position
            continue
        group = code[position + 1 : closing_brace(code, position) - 1]
        while "{" in group:
            group = re.sub(r"\{[^{}]*\}", "", group)
        for part in group.split(","):
            if name := re.match(r"\s*(\w+)", part):
                yield name[1], position


def findings(crate, layers):
    """One line for each use of a layer above."""
    height = {layer: number for number, layer in enumerate(layers)}
    for file in sorted(source_files(crate)):
        layer = file.partition("/")[0].removesuffix(".rs")
        if layer not in height:
            yield f"{crate}/{file} belongs to no layer of scripts/lints/layers.py"
            continue
        with open(os.path.join(crate, file), encoding="utf-8") as source:
            code = code_of(source.read())
        depth = file.removesuffix("/mod.rs").count("/") + (file not in ("lib.rs", "main.rs"))
        for name, position in names_at_root(code, depth):
            used = name if name in height else layers[0]
            line = code.count("\n", 0, position) + 1
            if name.endswith("!") or used == layer:
                continue
            if used in ENTRIES:
                yield f"{crate}/{file}:{line} uses {name}, which only the loader and the program may call"
            elif height[used] < height[layer]:
                yield f"{crate}/{file}:{line} uses {name}: {used} is above {layer}"


def source_files(crate):
    for folder, _, names in os.walk(crate):
        for name in names:
            file = os.path.relpath(os.path.join(folder, name), crate)
            if name.endswith(".rs") and not NOT_A_LAYER.search(file):
                yield file


def main():
    os.chdir(ROOT)
    lines = [line for crate, layers in LAYERS.items() for line in findings(crate, layers.split())]
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
