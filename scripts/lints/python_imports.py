"""Which module of a Python package imports which: every import statement, in functions and under
TYPE_CHECKING too, for it says who must know whom. Files outside the package that belong to it, such as
hooks/sitecustomize.py, count by what they import.

Programs that lie in folders import their neighbours by plain names. What a program finds because it changes sys.path
itself is not seen."""

import ast
import os


def imports_of_package(folder):
    """{file: {file it imports: line}}, paths relative to the package's `folder`."""
    files = sorted(python_files(folder))
    edges = {}
    for file in files:
        with open(os.path.join(folder, file), encoding="utf-8") as source:
            tree = ast.parse(source.read(), file)
        uses = edges[file] = {}
        for name, line in imported(tree, file, os.path.basename(folder)):
            target = file_of(name, files)
            if target is not None and target != file:
                uses.setdefault(target, line)
    return edges


def imports_of_programs(folder):
    """The same for programs: a name is looked for beside the file, then in each folder around it up to `folder`."""
    files = set(python_files(folder))
    edges = {}
    for file in sorted(files):
        with open(os.path.join(folder, file), encoding="utf-8") as source:
            tree = ast.parse(source.read(), file)
        uses = edges[file] = {}
        for place in places_around(file):
            for name, line in named(tree, file, place):
                target = file_of(name, files, place)
                if target is not None and target != file:
                    uses.setdefault(target, line)
    return edges


def places_around(file):
    place = os.path.dirname(file)
    while place:
        yield place
        place = os.path.dirname(place)
    yield ""


def named(tree, file, place):
    """(name, line) of every import; a relative one for the file's own folder alone, as a name from there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno
        elif isinstance(node, ast.ImportFrom) and place == "":
            base = base_of(node, file, "")
            for alias in node.names:
                yield ".".join(part for part in (base, alias.name) if part), node.lineno


def python_files(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                yield os.path.relpath(os.path.join(parent, name), folder)


def imported(tree, file, package):
    """(name within the package, line): `from ._a import b` gives "_a.b", `import package._a` gives "_a"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                head, _, rest = alias.name.partition(".")
                if head == package:
                    yield rest, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = base_of(node, file, package)
            if base is not None:
                for alias in node.names:
                    yield ".".join(part for part in (base, alias.name) if part), node.lineno


def base_of(node, file, package):
    if node.level == 0:
        head, _, rest = node.module.partition(".")
        return rest if head == package else None
    folders = os.path.dirname(file).split(os.sep) if os.path.dirname(file) else []
    kept = folders[: len(folders) - node.level + 1]
    return ".".join([*kept, *([node.module] if node.module else [])])


def file_of(name, files, place=""):
    """The file of the longest part of `name` that is a module here; the package itself for a plain name of it."""
    parts = name.split(".") if name else []
    while parts:
        path = os.path.join(place, *parts)
        for candidate in (path + ".py", os.path.join(path, "__init__.py")):
            if candidate in files:
                return candidate
        parts.pop()
    return "__init__.py" if not place and "__init__.py" in files else None
