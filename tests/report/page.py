"""Checks that a page is well-formed and self-contained, and that every chart has a name."""

import re
import sys
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.ids, self.charts, self.tables, self.scripts = [], set(), [], 0, 0

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        assert tag not in ("link", "img", "iframe", "object"), f"<{tag}>"
        if tag == "script":
            self.scripts += 1
            assert not attributes, "an external script"
        for name in ("src", "href"):
            assert attributes.get(name, "#").startswith("#"), f"{name}={attributes[name]}"
        if "id" in attributes:
            assert attributes["id"] not in self.ids, f"id twice: {attributes['id']}"
            self.ids.add(attributes["id"])
        if tag == "svg":
            self.charts.append(attributes)
        self.tables += tag == "table"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


with open(sys.argv[1], encoding="utf-8") as file:
    html = file.read()
page = Page()
page.feed(html)
page.close()
assert not page.open, f"never closed: {page.open}"
assert page.scripts == 1, f"{page.scripts} scripts"
assert page.tables == 6, f"{page.tables} tables"
assert len(page.charts) == 2 + 4 * 3, f"{len(page.charts)} charts"  # the first one is there for a phone, too
for chart in page.charts:
    assert chart["role"] == "img"
    assert all(name in page.ids for name in chart["aria-labelledby"].split()), chart
assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", html), "something external"
assert "prefers-color-scheme: dark" in html
