"""Opens a page in headless chromium: clicks on headings sort the table, and the filter hides processes."""

import html
import json
import re
import subprocess
import sys
import tempfile

CHROMIUM = [
    "chromium",
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--window-size=1300,1600",
]
# Clicks each heading of the overview twice, and records the order and the values after each click.
CLICK = """
<pre id="clicked"></pre>
<script>
addEventListener("load", () => {
  const table = document.querySelector("#processes table"), clicks = [];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    for (const click of [1, 2]) {
      head.querySelector("button").click();
      const cells = [...table.tBodies[0].rows].map(row => row.cells[column]);
      clicks.push({
        head: head.textContent, column, number: head.classList.contains("n"),
        sorted: heads.map(one => one.getAttribute("aria-sort")),
        shown: cells.map(cell => cell.textContent.trim()),
      });
    }
  });
  document.getElementById("clicked").textContent = JSON.stringify(clicks);
});
</script>
</body>"""


def dump(folder, page, *options):
    """The page of the folder after its scripts have run."""
    command = [*CHROMIUM, *options, f"--user-data-dir={folder}/profile", "--dump-dom", f"file://{folder}/{page}"]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


def text_after(folder, script, name):
    """The text of the element with this name after the script has run on the page."""
    with open(sys.argv[1], encoding="utf-8") as page, open(f"{folder}/page.html", "w", encoding="utf-8") as copy:
        copy.write(page.read().replace("</body>", script))
    found = re.search(rf'<pre id="{name}">(.+?)</pre>', dump(folder, "page.html"), re.S)
    assert found, f"nothing is {name}"
    return html.unescape(found.group(1))


FILTER = """
<pre id="filtered"></pre>
<script>
addEventListener("load", () => {
  const input = document.querySelector("input[type=search]"), shown = [];
  const names = selector => [...document.querySelectorAll(selector)].filter(row => !row.hidden).length;
  for (const text of ["", "SITE-2 live", "1002", "nothing"]) {
    input.value = text;
    input.dispatchEvent(new Event("input"));
    shown.push([names("#processes tbody tr"), names("article")].join(" "));
  }
  document.getElementById("filtered").textContent = shown.join(", ");
});
</script>
</body>"""


def filters_by_text(folder):
    shown = text_after(folder, FILTER, "filtered")
    assert shown == "4 4, 1 1, 1 1, 0 0", shown


def amount(text):
    """`4.00 GB` or `+4.00 GB/round` in KB; an unknown value is the lowest."""
    number, _, unit = text.partition("/")[0].partition(" ")
    return float("-inf") if number == "-" else float(number) * 1024 ** ["", "KB", "MB", "GB"].index(unit)


def key(click):
    return [amount(shown) if click["number"] else shown.lower() for shown in click["shown"]]


def sorts_by_clicks(folder):
    clicks = json.loads(text_after(folder, CLICK, "clicked"))
    assert len(clicks) >= 12, clicks
    for click in clicks:
        others = [order for column, order in enumerate(click["sorted"]) if column != click["column"]]
        assert others == [None] * len(others), click
    for first, second in zip(clicks[::2], clicks[1::2], strict=True):
        orders = ("descending", "ascending") if first["number"] else ("ascending", "descending")
        for click, order in ((first, orders[0]), (second, orders[1])):
            assert click["sorted"][click["column"]] == order, click
            keys = key(click)
            assert keys == sorted(keys, reverse=order == "descending"), click
    # At least one column has different values, so that sorting has an effect.
    assert any(len(set(key(click))) == len(click["shown"]) > 1 for click in clicks if click["number"]), clicks


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sorts_by_clicks(folder)
        filters_by_text(folder)
