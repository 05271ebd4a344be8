"""Prints the parts of flarena.report() that a notebook shows."""

import os

import flarena

before = flarena.report()
for n in range(8):
    flarena.mark("here", round=n)
page = flarena.report()
print(f"{os.getpid()}" in page and "here" in page, page.lower().startswith("<!doctype html>"))
print(page._repr_html_().lower().startswith('<iframe srcdoc="&lt;!doctype html'))
print(repr(page) == f"<flarena.report: a page of {len(page)} characters for a notebook or a file>")
print(before.count("marker file"))
