"""The check of layers finds each kind of use of a layer above, and nothing in a clean crate."""

import os
import tempfile
import unittest

import layers


def findings(files, order="lib boot exports top middle bottom"):
    with tempfile.TemporaryDirectory() as crate:
        for name, text in files.items():
            path = os.path.join(crate, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return [line.removeprefix(crate + "/") for line in layers.findings(crate, order.split())]


class Layers(unittest.TestCase):
    def test_a_use_of_a_layer_below_or_of_the_own_layer_is_fine(self):
        files = {"top.rs": "use crate::bottom::{f, g};", "middle/mod.rs": "mod x;", "middle/x.rs": "use super::Y;"}
        self.assertEqual(findings(files), [])

    def test_a_use_of_a_layer_above_is_reported_with_its_line(self):
        expected = ["middle/x.rs:2 uses top: top is above middle"]
        self.assertEqual(findings({"middle/x.rs": "fn f() {\n    crate::top::g()\n}"}), expected)

    def test_super_up_to_the_root_is_a_use(self):
        expected = ["middle.rs:1 uses top: top is above middle"]
        self.assertEqual(findings({"middle.rs": "use super::top::g;"}), expected)
        self.assertEqual(len(findings({"middle/x.rs": "use super::super::top::g;"})), 1)
        self.assertEqual(findings({"middle/x.rs": "use super::top::g;"}), [])

    def test_each_path_of_a_group_is_a_use(self):
        found = findings({"bottom.rs": "use crate::{\n    bottom::a,\n    middle::{b, c},\n    top::d,\n};"})
        self.assertEqual(len(found), 2)

    def test_an_item_of_the_root_is_above_all(self):
        expected = ["middle.rs:1 uses LIMIT: lib is above middle"]
        self.assertEqual(findings({"middle.rs": "use crate::LIMIT;"}), expected)

    def test_an_entry_is_reported_also_when_it_is_below(self):
        expected = ["boot.rs:1 uses exports, which only the loader and the program may call"]
        self.assertEqual(findings({"boot.rs": "use crate::exports::f;"}), expected)

    def test_a_file_without_a_layer_is_reported(self):
        self.assertEqual(len(findings({"attic.rs": ""})), 1)

    def test_tests_comments_and_texts_are_no_use(self):
        text = (
            '// crate::top::f\nconst S: &str = "crate::top::g"; const Q: char = \'"\';\n'
            "#[cfg(test)]\nuse crate::top::h;\n#[cfg(test)]\nmod tests {\n    fn f() { crate::top::i() }\n}\n"
        )
        self.assertEqual(findings({"bottom.rs": text, "bottom/tests.rs": "use crate::top::f;"}), [])
        self.assertEqual(len(findings({"bottom.rs": text + "use crate::top::h;"})), 1)

    def test_a_macro_may_stand_anywhere(self):
        self.assertEqual(findings({"bottom.rs": "fn f() { crate::pick!(1) }"}), [])


if __name__ == "__main__":
    unittest.main()
