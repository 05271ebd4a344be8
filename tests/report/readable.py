"""readable.py PAGE...: shows each page in headless chromium, 1200 and 390 pixels wide, in light and dark mode.

Text has at least 12 pixels (charts are scaled), does not overlap in a chart and is not cut off; verdicts stay in view.
"""

import os
import pathlib
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
    "--allow-file-access-from-files",
    "--window-size=1300,1600",
    "--virtual-time-budget=30000",
]
WIDTHS = (1200, 390)
SCHEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}

# Runs in the page. Each page is in a frame of the given width, so that the style rules for phones apply.
MEASURE = r"""
<script>
addEventListener("load", () => {
  const found = [], seen = { texts: 0, charts: 0, rows: 0 };
  const fault = text => found.length < 20 && found.push(text);
  const short = node => node.textContent.trim().slice(0, 40);
  for (const details of document.querySelectorAll("details")) details.open = true;
  const hasOwnText = element => [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  for (const element of document.body.querySelectorAll("*")) {
    if (["SCRIPT", "STYLE", "title", "desc"].includes(element.tagName) || !hasOwnText(element)) continue;
    const svg = element.closest("svg");
    const matrix = svg ? svg.getScreenCTM() : null;
    const scale = matrix ? Math.sqrt(Math.abs(matrix.a * matrix.d - matrix.b * matrix.c)) : 1;
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    seen.texts++;
    if (size < 12) fault(`${size.toFixed(1)} px: ${short(element)}`);
  }
  for (const svg of document.querySelectorAll("svg.chart")) {
    seen.charts++;
    const frame = svg.getBoundingClientRect();
    const box = text => ({ text: short(text), at: text.getBoundingClientRect() });
    const boxes = [...svg.querySelectorAll("text")].map(box);
    boxes.forEach((a, i) => {
      const isWider = a.at.left < frame.left - 1 || a.at.right > frame.right + 1;
      const isHigher = a.at.top < frame.top - 2 || a.at.bottom > frame.bottom + 2;
      if (isWider || isHigher) fault(`cut off: ${a.text}`);
      for (const b of boxes.slice(i + 1)) {
        const x = Math.min(a.at.right, b.at.right) - Math.max(a.at.left, b.at.left);
        const y = Math.min(a.at.bottom, b.at.bottom) - Math.max(a.at.top, b.at.top);
        // A box is higher than its letters. Where both axes begin, two zeros are close together.
        const corner = /^0(\.0+)? /.test(a.text) && /^0/.test(b.text);
        if (x > 1 && y > 4 && !corner) fault(`crossing by ${x.toFixed(0)} x ${y.toFixed(0)}: ${a.text} | ${b.text}`);
      }
    });
  }
  const wide = document.querySelector("#process-table").closest(".wide");
  const hint = getComputedStyle(wide, "::before").content;
  const isScrolled = wide.scrollWidth > wide.clientWidth + 1;
  if (isScrolled !== hint.includes("Scroll")) fault(`hint ${hint} at ${wide.scrollWidth} px`);
  for (const scrolled of [0, wide.scrollWidth]) {
    wide.scrollLeft = scrolled;
    for (const row of wide.querySelectorAll("tr")) {
      const at = row.cells[0].getBoundingClientRect();
      seen.rows++;
      if (at.left < 0 || at.right > innerWidth) fault(`out of view: ${short(row)}`);
    }
  }
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth) fault(`the page is ${page.scrollWidth} px wide`);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  parent.postMessage({ name: `${document.title} ${innerWidth} ${dark}`, seen, found }, "*");
});
</script>
"""
COLLECT = r"""<!doctype html><pre id="found"></pre><script>
addEventListener("message", event => {
  const { name, seen, found } = event.data;
  document.getElementById("found").textContent +=
    `@ ${name}: ${seen.texts} texts, ${seen.charts} charts, ${seen.rows} rows\n` +
    found.map(text => text + "\n").join("");
});
</script>
"""


def prepare(folder, pages):
    frames = ""
    for page in pages:
        name = os.path.basename(page)
        text = pathlib.Path(page).read_text()
        assert "</body>" in text, page
        text = text.replace("</body>", MEASURE + "</body>").replace("<title>flarena report", f"<title>{name}", 1)
        pathlib.Path(folder, name).write_text(text)
        frames += "".join(
            f'<iframe src="{name}" width="{width}" height="800" style="border:0"></iframe>\n' for width in WIDTHS
        )
    pathlib.Path(folder, "all.html").write_text(COLLECT + frames)


with tempfile.TemporaryDirectory() as folder:
    prepare(folder, sys.argv[1:])
    faults = 0
    for scheme, options in SCHEMES.items():
        command = [*CHROMIUM, f"--user-data-dir={folder}/profile", *options, "--dump-dom", f"file://{folder}/all.html"]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout.decode(), re.S).group(1)
        print(found)
        pages = re.findall(r"^@ (\S+) (\d+) (\w+): (\d+) texts, (\d+) charts", found, re.M)
        expected = {(os.path.basename(page), str(width), scheme) for page in sys.argv[1:] for width in WIDTHS}
        assert {row[:3] for row in pages} == expected, pages
        assert all(int(texts) > 50 and int(charts) >= 4 for *_, texts, charts in pages), pages
        faults += sum(not line.startswith("@") for line in found.splitlines() if line)
    assert faults == 0, f"{faults} faults"
