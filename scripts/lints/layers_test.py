"""The check of layers finds each kind of use of a layer above, and nothing in a clean crate."""

import os
import tempfile

import layers

ORDER = "lib boot exports top middle bottom".split()
TESTS = "// crate::top::f\n#[cfg(test)]\nuse crate::top::h;\n#[cfg(test)]\nmod tests {\n    use crate::top::i;\n}\n"
# A file, its text, and the findings.
CASES = (
    ("top.rs", "use crate::bottom::{f, g};", []),
    ("middle/x.rs", "use super::Y;", []),
    ("middle/x.rs", "fn f() {\n    crate::top::g()\n}", ["middle/x.rs:2 uses top: top is above middle"]),
    ("middle.rs", "use super::top::g;", ["middle.rs:1 uses top: top is above middle"]),
    ("middle/x.rs", "use super::super::top::g;", ["middle/x.rs:1 uses top: top is above middle"]),
    ("middle/x.rs", "use super::top::g;", []),
    (
        "bottom.rs",
        "use crate::{\n    bottom::a,\n    middle::{b, c},\n    top::d,\n};",
        [f"bottom.rs:1 uses {layer}: {layer} is above bottom" for layer in ("middle", "top")],
    ),
    ("middle.rs", "use crate::LIMIT;", ["middle.rs:1 uses LIMIT: lib is above middle"]),
    ("boot.rs", "use crate::exports::f;", ["boot.rs:1 uses exports, which only the loader and the program may call"]),
    ("attic.rs", "", ["attic.rs belongs to no layer of scripts/lints/layers.py"]),
    ("bottom/tests.rs", "use crate::top::f;", []),
    ("bottom.rs", TESTS, []),
    ("bottom.rs", TESTS + "use crate::top::h;", ["bottom.rs:8 uses top: top is above bottom"]),
    ("bottom.rs", "fn f() { crate::pick!(1) }", []),
)

for name, text, expected in CASES:
    with tempfile.TemporaryDirectory() as crate:
        path = os.path.join(crate, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        found = [line.removeprefix(crate + "/") for line in layers.findings(crate, ORDER)]
    assert found == expected, (name, text, found)
