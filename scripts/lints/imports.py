"""No import circle in src/ nor among the Python files beside it, and in src/shim no call upward.

    scripts/lints/imports.py             every crate and all Python; exits 1 when something is found
    scripts/lints/imports.py --drawing   the rooms of each part and what they use

A circle is files that use each other, directly or over others; and folders that do, for each folder with
what lies in it taken as one. What counts as a use is told in rust_imports.py and python_imports.py.
"""

import os
import sys

import graph
from python_imports import imports_of_package, imports_of_programs
from rust_imports import imports_of_crate

# Top to bottom: a room may use its own files and every room below it. A room is a file or a folder.
SHIM_ROOMS = (
    *("lib", "boot", "exports", "fork", "governor", "report", "garbage", "abi", "launch"),
    *("memory_limit", "channel", "backends", "sites", "python", "pools"),
)
# The two ways in: the loader calls the one, the program the other, and no room either.
WAYS_IN = ("boot", "exports")

# Path, reader, and the rooms from top to bottom where their order is fixed.
PARTS = (
    ("src/shared/lib.rs", imports_of_crate, None),
    ("src/cli/main.rs", imports_of_crate, None),
    ("src/sys/lib.rs", imports_of_crate, None),
    ("src/recycler/lib.rs", imports_of_crate, None),
    ("src/shim/lib.rs", imports_of_crate, SHIM_ROOMS),
    ("src/python/flarena", imports_of_package, None),
    ("scripts", imports_of_programs, None),
    ("bench", imports_of_programs, None),
    ("docker", imports_of_programs, None),
    ("tests", imports_of_programs, None),
)


def findings(name, edges, rooms=None):
    """What is wrong with one part of the tree, one line each."""
    told = set()
    for folder in [None, *graph.folders(edges)]:
        place = os.path.join(name, folder or "").rstrip("/")
        for steps in circles(edges, folder):
            # Two files side by side are a circle of files and one of their folder.
            if not told.issuperset(steps):
                told.update(steps)
                ways = ", ".join(f"{source}:{line} -> {target}" for source, line, target in steps)
                yield f"{place}: a circle of {'files' if folder is None else 'rooms'}: {ways}"
    if rooms is not None:
        yield from calls_upward(name, edges, rooms)


def circles(edges, folder):
    """The circles among all files (folder None) or in one folder, each as its (file, line, used file)."""
    if folder is not None:
        rooms = graph.collapsed(edges, folder)
    else:
        rooms = {a: {b: (a, line, b) for b, line in used.items()} for a, used in edges.items()}
    for circle in graph.circles(rooms):
        yield [rooms[a][b] for a, b in zip(circle, circle[1:])]


def calls_upward(name, edges, rooms):
    floor = {room: number for number, room in enumerate(rooms)}
    for source, targets in sorted(edges.items()):
        if room_of(source) not in floor:
            yield f"{name}/{source} is in none of the rooms {', '.join(rooms)}"
            continue
        for target, line in sorted(targets.items()):
            above, below = room_of(target), room_of(source)
            if floor.get(above, len(rooms)) < floor[below]:
                yield f"{name}/{source}:{line} uses {target}: {above} is above {below}"
            elif above in WAYS_IN and above != below:
                yield f"{name}/{source}:{line} uses {target}: {above} is a way in, which no room uses"


def room_of(file):
    return file.partition("/")[0].partition(".")[0]


def drawing(name, edges):
    yield name
    for room, targets in sorted(graph.collapsed(edges, "").items()):
        yield f"  {room} -> {' '.join(sorted(targets))}"


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    lines = []
    for path, reader, rooms in PARTS:
        name = path if os.path.isdir(path) else os.path.dirname(path)
        edges = reader(path)
        lines += drawing(name, edges) if "--drawing" in sys.argv[1:] else findings(name, edges, rooms)
    print("\n".join(lines), end="\n" if lines else "")
    return 0 if "--drawing" in sys.argv[1:] else bool(lines)


if __name__ == "__main__":
    sys.exit(main())
