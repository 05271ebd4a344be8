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
        lib identity limits thread abort clock headroom owner seccomp config env unmap_hooks sync
        thread_pointer loader attention proc io time errno
    """,
    "src/shared": """
        lib sites marker settings huge_pages role malloc_conf values defaults parse backoff cgroup kernel_path pools
        python_line stages fnv system_error
    """,
}
# The loader and the program call these, and no other layer may.
ENTRIES = ("boot", "exports")

COMMENT = re.compile(r"//[^\n]*")
# One item, or a module that ends with the first brace in the first column, as rustfmt writes it.
TEST_ITEM = re.compile(r"^#\[cfg\((?:test|all\(test)\b.*\n(?:#\[.*\n)*(?:.*;|(?:.*\n)+?\};?)$", re.MULTILINE)
NOT_A_LAYER = re.compile(r"(?:^|[/_])(?:tests?|testing|fuzz|scratch|build)(?:\.rs$|/)")


def code_of(source):
    """The source without comments and tests; each line keeps its number."""
    return TEST_ITEM.sub(lambda found: "\n" * found[0].count("\n"), COMMENT.sub("", source))


def names_at_root(code, depth):
    """(name, position) of each path that begins at the root of the crate."""
    root = "crate::" + (f"|{'super::' * depth}" if depth else "")
    for found in re.finditer(rf"(?<![\w:])(?:{root})(\w+!?|{{[^;]*)", code):
        group = found[1].strip()[1:-1]
        if not found[1].startswith("{"):
            yield found[1], found.start(1)
            continue
        while "{" in group:
            group = re.sub(r"\{[^{}]*\}", "", group)
        for name in re.findall(r"(?:^|,)\s*(\w+)", group):
            yield name, found.start(1)


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
    return "\n".join(lines) or None


if __name__ == "__main__":
    sys.exit(main())
