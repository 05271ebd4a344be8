"""Tests of safety.py: it reports the comments that state no invariant, and no others."""

import unittest

import safety

REFERENCES = (
    "as above.",
    "as above: a live block of the backend's.",
    "the same contract.",
    "by contract the caller's.",
    "this function's own contract.",
    "the caller keeps the function's contract.",
    "as valloc.",
    "a pointer, mapped and\n    // by contract the caller's.",
)
INVARIANTS = (
    "opened above, closed once.",
    "the caller owns the range.",
    "NUL-terminated by this function's contract.",
    "the range was not unmapped, and nothing uses it.",
    "null, or what find() leaked.\n    x();\n    // As above, but no part of the comment.",
)


def findings_of(comment):
    return list(safety.findings("a.rs", f"fn f() {{\n    // SAFETY: {comment}\n    unsafe {{ g() }}\n}}\n"))


class Safety(unittest.TestCase):
    def test_comment_without_invariant_is_reported_with_its_line(self):
        for comment in REFERENCES:
            self.assertEqual(len(findings_of(comment)), 1, comment)
            self.assertTrue(findings_of(comment)[0].startswith("a.rs:2: "))

    def test_comment_with_invariant_passes(self):
        for comment in INVARIANTS:
            self.assertEqual(findings_of(comment), [], comment)


if __name__ == "__main__":
    unittest.main()
