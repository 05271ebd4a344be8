"""The check of SAFETY comments finds those that say no fact, and no others."""

import unittest

import safety

EMPTY = (
    "as above.",
    "as above: a live block of the backend's.",
    "the same contract.",
    "by contract the caller's.",
    "this function's own contract.",
    "the caller keeps the function's contract.",
    "as valloc.",
    "a pointer, mapped and\n    // by contract the caller's.",
)
FACTS = (
    "opened above, closed once.",
    "the caller owns the range.",
    "NUL-terminated by this function's contract.",
    "as it was not unmapped it is still there, and nobody's.",
    "null, or what find() leaked.\n    x();\n    // As above, but no part of the comment.",
)


def found(said):
    return list(safety.findings("a.rs", f"fn f() {{\n    // SAFETY: {said}\n    unsafe {{ g() }}\n}}\n"))


class Safety(unittest.TestCase):
    def test_a_comment_without_a_fact_is_named_with_its_line(self):
        for said in EMPTY:
            self.assertEqual(len(found(said)), 1, said)
            self.assertTrue(found(said)[0].startswith("a.rs:2: "))

    def test_a_fact_is_let_through(self):
        for said in FACTS:
            self.assertEqual(found(said), [], said)


if __name__ == "__main__":
    unittest.main()
