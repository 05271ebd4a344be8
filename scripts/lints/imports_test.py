"""The import check finds what it is there to find, and nothing in a clean tree."""

import contextlib
import os
import tempfile
import unittest

import imports
from python_imports import imports_of_package, imports_of_programs
from rust_imports import imports_of_crate


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


@contextlib.contextmanager
def tree(files):
    with tempfile.TemporaryDirectory() as folder:
        write(folder, files)
        yield folder


def crate(files):
    with tree(files) as folder:
        return imports_of_crate(os.path.join(folder, "lib.rs"))


def package(files):
    with tree({f"pack/{name}": text for name, text in files.items()}) as folder:
        return imports_of_package(os.path.join(folder, "pack"))


def programs(files):
    with tree(files) as folder:
        return imports_of_programs(folder)


def found(edges, rooms=None):
    return list(imports.findings("src", edges, rooms))


class Circles(unittest.TestCase):
    def test_two_files_that_use_each_other_are_named_with_their_lines(self):
        edges = crate({"lib.rs": "mod a;\nmod b;", "a.rs": "\nuse crate::b::f;", "b.rs": "fn f() { super::a::g() }"})
        self.assertEqual(found(edges), ["src: a circle of files: a.rs:2 -> b.rs, b.rs:1 -> a.rs"])

    def test_a_circle_over_three_files_is_found(self):
        edges = crate(
            {
                "lib.rs": "mod a; mod b; mod c;",
                "a.rs": "use crate::b::B;",
                "b.rs": "use super::{c::C};",
                "c.rs": "fn f() { crate::a::f(); }",
            }
        )
        self.assertEqual(len(found(edges)), 1)

    def test_a_folder_and_its_file_that_use_each_other_are_a_circle(self):
        edges = crate(
            {"lib.rs": "mod a;", "a/mod.rs": "mod b;\npub struct T;\nfn f() { b::g(); }", "a/b.rs": "use super::T;"}
        )
        self.assertEqual(len(found(edges)), 1)

    def test_two_folders_that_use_each_other_over_different_files_are_a_circle(self):
        edges = crate(
            {
                "lib.rs": "mod a; mod b;",
                "a/mod.rs": "mod x; mod y;",
                "b/mod.rs": "mod x; mod y;",
                "a/x.rs": "use crate::b::y::F;",
                "b/x.rs": "use crate::a::y::F;",
                "a/y.rs": "",
                "b/y.rs": "",
            }
        )
        self.assertEqual(len(found(edges)), 1)
        self.assertIn("src: a circle of rooms: a/x.rs:1 -> b/y.rs, b/x.rs:1 -> a/y.rs", found(edges))

    def test_a_circle_behind_a_reexport_is_found(self):
        edges = crate(
            {
                "lib.rs": "mod a; mod b;",
                "a/mod.rs": "mod x;\npub use x::F;",
                "a/x.rs": "use crate::b;\nfn f() { b::g(); }",
                "b.rs": "use crate::a::F;",
            }
        )
        self.assertIn("a/x.rs:2 -> b.rs, b.rs:1 -> a/x.rs", found(edges)[0])

    def test_python_files_that_import_each_other_are_found_also_inside_functions(self):
        edges = package({"__init__.py": "", "_a.py": "def f():\n    from ._b import g", "_b.py": "from . import _a"})
        self.assertEqual(found(edges), ["src: a circle of files: _a.py:2 -> _b.py, _b.py:1 -> _a.py"])

    def test_programs_that_import_each_other_by_plain_names_are_found(self):
        edges = programs({"tools/a.py": "import os, b", "tools/b.py": "def f():\n    from a import g", "b.py": ""})
        circle = "src: a circle of files: tools/a.py:1 -> tools/b.py, tools/b.py:2 -> tools/a.py"
        self.assertEqual(found(edges), [circle])

    def test_a_program_finds_a_package_in_a_folder_around_it_and_what_is_beside_it_by_a_dot(self):
        edges = programs(
            {"pack/x/a.py": "import pack.b", "pack/b.py": "from .x import a", "pack/x/c.py": "from . import a"}
        )
        self.assertEqual(edges["pack/x/c.py"], {"pack/x/a.py": 1})
        self.assertIn("src: a circle of files: pack/b.py:1 -> pack/x/a.py, pack/x/a.py:1 -> pack/b.py", found(edges))


class CleanTrees(unittest.TestCase):
    def test_a_face_of_reexports_is_no_circle_with_the_files_behind_it(self):
        edges = crate(
            {
                "lib.rs": "mod a;",
                "a/mod.rs": "mod x;\nmod y;\npub use x::F;\npub use y::G;",
                "a/x.rs": "use super::G;",
                "a/y.rs": "",
            }
        )
        self.assertEqual(edges["a/x.rs"], {"a/y.rs": 1})
        self.assertEqual(found(edges), [])

    def test_tests_comments_and_strings_import_nothing(self):
        edges = crate(
            {
                "lib.rs": "mod a;\nmod b;",
                "a.rs": "use crate::b::f;",
                "b.rs": '// crate::a::f\nconst S: &str = "crate::a::g"; const Q: char = \'"\';\n'
                "#[cfg(test)]\nmod tests {\n    use crate::a::h;\n}\n"
                '#[cfg(test)]\n#[path = "b_tests.rs"]\nmod more;',
                "b_tests.rs": "use crate::a::h;",
            }
        )
        self.assertEqual(found(edges), [])

    def test_a_quote_in_a_character_does_not_hide_the_import_after_it(self):
        edges = crate({"lib.rs": "mod a; mod b;", "a.rs": "const Q: char = '\"';\nuse crate::b::f;", "b.rs": ""})
        self.assertEqual(edges["a.rs"], {"b.rs": 2})

    def test_the_python_package_without_a_circle_is_clean(self):
        edges = package({"__init__.py": "from ._a import f", "_a.py": "import pack._b", "_b.py": "import os"})
        self.assertEqual(edges["_a.py"], {"_b.py": 1})
        self.assertEqual(found(edges), [])


class Rooms(unittest.TestCase):
    ROOMS = ("lib", "top", "middle", "bottom")
    FILES = {"lib.rs": "mod top; mod middle; mod bottom;", "top.rs": "use crate::bottom::f;", "bottom.rs": ""}

    def test_calls_down_are_fine(self):
        edges = crate({**self.FILES, "middle/mod.rs": "use crate::bottom::f;"})
        self.assertEqual(found(edges, self.ROOMS), [])

    def test_a_call_upward_is_named(self):
        edges = crate({**self.FILES, "middle/mod.rs": "mod x;", "middle/x.rs": "fn f() {\n    crate::top::g()\n}"})
        self.assertEqual(found(edges, self.ROOMS), ["src/middle/x.rs:2 uses top.rs: top is above middle"])

    def test_a_call_of_a_way_in_is_named_though_it_leads_down(self):
        edges = crate({"lib.rs": "mod boot; mod exports;", "boot.rs": "use crate::exports::f;", "exports.rs": ""})
        told = "src/boot.rs:1 uses exports.rs: exports is a way in, which no room uses"
        self.assertEqual(found(edges, ("lib", "boot", "exports")), [told])

    def test_an_item_of_the_root_is_above_all(self):
        edges = crate({**self.FILES, "middle.rs": "use crate::LIMIT;"})
        self.assertEqual(found(edges, self.ROOMS), ["src/middle.rs:1 uses lib.rs: lib is above middle"])

    def test_a_macro_belongs_to_the_file_that_holds_it(self):
        macro = "#[macro_export]\nmacro_rules! pick { () => {} }"
        edges = crate({**self.FILES, "middle.rs": "use crate::pick;", "bottom.rs": macro})
        self.assertEqual(edges["middle.rs"], {"bottom.rs": 1})
        self.assertEqual(found(edges, self.ROOMS), [])
        macro = "macro_rules! pick { () => {} }\npub(crate) use pick;"
        edges = crate({**self.FILES, "middle.rs": "use crate::bottom::pick;", "bottom.rs": macro})
        self.assertEqual(edges["middle.rs"], {"bottom.rs": 1})

    def test_a_file_in_no_room_is_named(self):
        edges = crate({**self.FILES, "lib.rs": "mod top; mod bottom; mod attic;", "attic.rs": ""})
        self.assertEqual(len(found(edges, self.ROOMS)), 1)


if __name__ == "__main__":
    unittest.main()
