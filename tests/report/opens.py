"""opens.py PAGE...: shows each page in headless chromium, 1200 and 390 pixels wide.

No page has an error in the console, is wider than the window, has an image without a name, or is higher than 8,000
pixels at a width of 1200.
"""

import os
import pathlib
import re
import sys
import tempfile

from browser import dump

WIDTHS = (1200, 390)

# The first script of the page, so that it sees all errors. Each page is in a frame of the given width.
CHECK = r"""
<script>
const faults = [];
addEventListener("error", event => faults.push(`error: ${event.message}`));
console.error = (...texts) => faults.push(`error: ${texts.join(" ")}`);
addEventListener("load", () => {
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) faults.push(`the page is ${page.scrollWidth} px wide`);
  if (innerWidth === 1200 && page.scrollHeight > 8000) faults.push(`the page is ${page.scrollHeight} px high`);
  const images = [...document.querySelectorAll("svg:not([aria-hidden=true]), img")];
  for (const image of images) {
    const label = document.getElementById((image.getAttribute("aria-labelledby") || "").split(" ")[0]);
    const name = image.getAttribute("aria-label") || image.getAttribute("alt") || label?.textContent;
    if (!name?.trim()) faults.push(`an image without a name: ${image.outerHTML.slice(0, 80)}`);
  }
  const text = `${innerWidth} px wide, ${page.scrollHeight} px high, ${images.length} images`;
  parent.postMessage({ text: `${document.title}: ${text}`, faults }, "*");
});
</script>
"""
COLLECT = r"""<!doctype html><pre id="found"></pre><script>
addEventListener("message", event => {
  const { text, faults } = event.data;
  document.getElementById("found").textContent += [`@ ${text}`, ...faults, ""].join("\n");
});
</script>
"""


def prepare(folder, pages):
    frames = ""
    for page in pages:
        name = os.path.basename(page)
        text = pathlib.Path(page).read_text()
        begin, end = re.search(r"<title>flarena \w+", text).span()
        text = f"{text[:begin]}{CHECK}<title>{name}{text[end:]}"
        pathlib.Path(folder, name).write_text(text)
        for width in WIDTHS:
            frames += f'<iframe src="{name}" width="{width}" height="800" style="border:0"></iframe>\n'
    pathlib.Path(folder, "all.html").write_text(COLLECT + frames)


with tempfile.TemporaryDirectory() as folder:
    prepare(folder, sys.argv[1:])
    document = dump(folder, "all.html", "--allow-file-access-from-files", "--virtual-time-budget=30000")
    found = re.search(r'<pre id="found">(.*?)</pre>', document, re.S).group(1)
    print(found)
    lines = [line for line in found.splitlines() if line]
    faults = [line for line in lines if not line.startswith("@")]
    assert len(lines) - len(faults) == len(WIDTHS) * len(sys.argv[1:]), "a page did not load"
    assert not faults, f"{len(faults)} faults"
