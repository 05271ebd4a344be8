"""Which file of a crate uses which, read from its source without a compiler.

A use is a path that leads to an item of another file: in `use`, or inline (`super::x()`, `crate::a::B`,
`child::f()`). Paths are followed through re-exports to the file that holds the item. No use are

- `mod x;`, which only says that a file exists,
- a `pub use` of the module's own child that the module itself does nothing with: it is the folder's face,
- tests (`#[cfg(test)]` items and files), comments and strings, and items of other crates.

An exported macro stands where it is written, though its path begins at the root. Not seen: names that only a
macro's expansion writes, and macros that are called without a path.
"""

import os
import re

VISIBLE = r"(?:\bpub(?:\([^)]*\))?\s+)?"
CFG_TEST = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*)\)\]")
ATTRIBUTE = re.compile(r"\s*#\[")
ITEM = re.compile(
    rf"\s*{VISIBLE}(?:async |const |unsafe |extern )*"
    r"(?:fn|mod|use|impl|struct|enum|const|static|trait|type|macro_rules!)\b"
)
MODULE = re.compile(rf"(?:#\[path = (?P<path>\"[^\"]*\")\]\s*)?{VISIBLE}\bmod\s+(?P<name>\w+)\s*(?P<end>[;{{])")
USE = re.compile(rf"(?P<visible>{VISIBLE})\buse\s+(?P<tree>[^;]+);")
PATH = re.compile(r"(?<![\w:])(?:::)?[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")
MACRO = re.compile(r"#\[macro_export\]\s*macro_rules!\s*(\w+)")
LEXEME = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^\\'])'""",
    re.DOTALL,
)


class Module:
    """One module: its file, its children, the names it imports and the paths it writes."""

    def __init__(self, parent, file, text, source):
        self.parent, self.file = parent, file
        self.children = {}
        self.names = {}  # name -> (segments, position, is public)
        self.globs = []
        self.macros = {}  # of the whole crate, held by its root: name -> module
        self.text, self.source = text, source
        self.paths = []


def imports_of_crate(root_file):
    """{file: {file it uses: line}}, paths relative to the folder of `root_file`."""
    base = os.path.dirname(root_file)
    modules = []
    load(None, root_file, base, modules)
    edges = {os.path.relpath(module.file, base): {} for module in modules}
    for module in modules:
        for segments, position in used_paths(module):
            target = resolve(module, segments)
            if target is not None and target.file != module.file:
                line = module.source.count("\n", 0, position) + 1
                uses = edges[os.path.relpath(module.file, base)]
                uses.setdefault(os.path.relpath(target.file, base), line)
    return edges


def load(parent, file, child_folder, modules):
    with open(file, encoding="utf-8") as source:
        source = source.read()
    module = Module(parent, file, without_tests(blanked(source)), source)
    read(module, child_folder, modules)
    return module


def read(module, child_folder, modules):
    """Takes the text of a module apart: child modules first, then imports, then the paths that are left."""
    modules.append(module)
    modules[0].macros.update(dict.fromkeys(MACRO.findall(module.text), module))
    for found in iter(lambda: MODULE.search(module.text), None):
        name, start, end = found["name"], found.start(), found.end()
        if found["end"] == "{":
            end = matching_brace(module.text, found.end() - 1)
            body = " " * found.end() + module.text[found.end() : end - 1]
            child = module.children[name] = Module(module, module.file, body, module.source)
            module.text = blank(module.text, start, end)
            read(child, os.path.join(child_folder, name), modules)
        else:
            module.text = blank(module.text, start, end)
            file, folder = child_file(module, child_folder, name, found)
            module.children[name] = load(module, file, folder, modules)
            module.children[name].parent = module
    for found in USE.finditer(module.text):
        for segments, name in leaves(found["tree"]):
            if name == "*":
                module.globs.append((segments, found.start()))
            else:
                module.names[name] = (segments, found.start(), bool(found["visible"]))
    module.text = USE.sub(lambda use: " " * len(use[0]), module.text)
    module.paths = [(re.split(r"\s*::\s*", path[0].strip()), path.start()) for path in PATH.finditer(module.text)]


def child_file(module, child_folder, name, declaration):
    if declaration["path"] is not None:
        # The blanked text has the quotes; the path stands in the source.
        path = module.source[declaration.start("path") + 1 : declaration.end("path") - 1]
        return os.path.join(os.path.dirname(module.file), path), os.path.join(child_folder, name)
    file = os.path.join(child_folder, name + ".rs")
    folder = os.path.join(child_folder, name)
    return (file if os.path.exists(file) else os.path.join(folder, "mod.rs")), folder


def used_paths(module):
    """All (segments, position) that may lead to another module."""
    yield from module.paths
    yield from module.globs
    for name, (segments, position, public) in module.names.items():
        own_child = segments[0] in module.children or segments[:1] == ["self"]
        if not (public and own_child) or re.search(rf"\b{name}\b", module.text):
            # A module brought in by name is used where a path goes through it.
            if not isinstance(follow(module, segments), Module) or not goes_through(module, name):
                yield segments, position


def goes_through(module, name):
    return any(path[0] == name for path, _ in module.paths)


def resolve(module, segments):
    """The module that holds what the path names, or None: another crate's, or a local type's."""
    target = follow(module, segments)
    return target.holder if isinstance(target, Item) else target


class Item:
    def __init__(self, holder):
        self.holder = holder


def follow(module, segments, depth=0):
    """The module that a path leads to, the Item at its end, or None where it leaves the crate."""
    first, rest = segments[0], segments[1:]
    if first == "crate":
        while module.parent is not None:
            module = module.parent
    elif first == "super":
        module = module.parent
    elif first in module.children:
        module = module.children[first]
    elif first in module.names and depth < 20:
        path = module.names[first][0]
        if path[0] == first:
            # `pub(crate) use a_macro;` below its definition; else `use libc;`, another crate.
            return Item(module) if re.search(rf"\bmacro_rules!\s*{first}\b", module.text) else None
        return follow(module, [*path, *rest], depth + 1)
    elif first != "self":
        return None
    for i, name in enumerate(rest):
        if module is None:
            return None
        if name == "super":
            module = module.parent
        elif name in module.children:
            module = module.children[name]
        elif name in module.names and depth < 20:
            return follow(module, [*module.names[name][0], *rest[i + 1 :]], depth + 1)
        elif name != "self":
            return Item(module.macros.get(name) or from_glob(module, name, depth) or module)
    return module


def from_glob(module, name, depth):
    """The module that a glob import of `module` takes `name` from, when it is one of our own."""
    for segments, _ in module.globs:
        source = follow(module, segments, depth + 1) if depth < 20 else None
        item = rf"\b(?:fn|struct|enum|const|static|trait|type)\s+{name}\b"
        if isinstance(source, Module) and re.search(item, source.text):
            return source
    return None


def leaves(tree):
    """`a::{b, c as d, e::*}` -> (["a", "b"], "b"), (["a", "c"], "d"), (["a", "e"], "*")."""
    tree = tree.strip().removeprefix("::")
    head, brace, group = tree.partition("{")
    prefix = [segment.strip() for segment in head.split("::") if segment.strip()]
    if brace:
        for part in split_at_commas(group[: group.rindex("}")]):
            for segments, name in leaves(part):
                path = prefix + segments
                if path[-1] == "self":
                    path = path[:-1]
                    name = path[-1] if name == "self" else name
                yield path, name
        return
    last, _, alias = prefix[-1].partition(" as ")
    path = [*prefix[:-1], last.strip()]
    if path[-1] == "*":
        yield path[:-1], "*"
    else:
        yield path, alias.strip() or path[-1]


def split_at_commas(group):
    part, depth = "", 0
    for character in group + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part.strip():
                yield part
            part = ""
        else:
            part += character


def blanked(source):
    """The source with comments, strings and character literals blanked; each byte keeps its place."""

    def blank_lexeme(found):
        text = re.sub(r"[^\n]", " ", found[0])
        return '"' + text[1:-1] + '"' if found[0][0] == '"' else text

    return LEXEME.sub(blank_lexeme, source)


def without_tests(text):
    """The text with everything under `#[cfg(test)]` blanked."""
    found = CFG_TEST.search(text)
    while found:
        text = blank(text, found.start(), end_of_item(text, found.end()))
        found = CFG_TEST.search(text)
    return text


def end_of_item(text, position):
    while ATTRIBUTE.match(text, position):
        position = text.index("]", position) + 1
    is_item = ITEM.match(text, position)
    depth = 0
    for i in range(position, len(text)):
        character = text[i]
        if character == "{" and depth == 0:
            return matching_brace(text, i)
        if depth == 0 and (character == ";" or character == "," and not is_item):
            return i + 1
        if character in ")]}" and depth == 0:
            return i
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
    return len(text)


def matching_brace(text, opening):
    depth = 0
    for i in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return len(text)


def blank(text, start, end):
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
