"""Draws the cost of each call over the number of live blocks, one panel per call, with logarithmic axes."""

import math
from xml.sax.saxutils import escape

import summary

PANEL, HEIGHT, LEFT, TOP, GAP = 300, 200, 80, 100, 70
COLOURS = {
    "glibc": "#8a8a8a",
    "jemalloc-plain": "#5b86b8",
    "mimalloc3": "#c08a2f",
    "tcmalloc": "#5f9a58",
    "flarena-glibc": "#d62246",
    "flarena-jemalloc": "#7a1fa2",
}


def svg(results):
    columns = summary.columns(results[0])
    rows = math.ceil(len(columns) / 2)
    width, height = 2 * (LEFT + PANEL) + GAP, TOP + rows * (HEIGHT + GAP)
    titles = {c["name"]: c["title"] for c in results[0]["contenders"] if c["name"] in COLOURS}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(12, 20, "Cost of a call with N live blocks of 80 MiB that were never written", size=15),
        *legend(titles),
    ]
    for place, column in enumerate(columns):
        left = LEFT + place % 2 * (LEFT + PANEL)
        top = TOP + place // 2 * (HEIGHT + GAP)
        parts += panel(results, column, titles, left, top)
    return "\n".join([*parts, "</svg>\n"])


def legend(titles):
    parts = []
    for place, (name, title) in enumerate(titles.items()):
        x, y = 12 + place % 3 * 250, 33 + place // 3 * 20
        parts += [f'<rect x="{x}" y="{y}" width="12" height="12" fill="{COLOURS[name]}"/>', text(x + 17, y + 10, title)]
    return parts


def panel(results, column, titles, left, top):
    lines = {name: points(results, column, name) for name in titles}
    values = [value for line in lines.values() for _, value in line]
    counts = [count for line in lines.values() for count, _ in line]
    if not values:
        return []
    low, high = decades(values)
    first, last = decades(counts)

    def at(count, value):
        x = left + PANEL * (math.log10(count) - first) / max(last - first, 1)
        return x, top + HEIGHT - HEIGHT * (math.log10(value) - low) / (high - low)

    parts = [text(left, top - 8, column.title, size=13)]
    for power in range(low, high + 1):
        y = at(10**first, 10**power)[1]
        parts.append(f'<line x1="{left}" x2="{left + PANEL}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e2e2e2"/>')
        parts.append(text(left - 6, y + 4, f"{10**power:,}" if power >= 0 else f"{10.0**power:g}", anchor="end"))
    for power in range(first, last + 1):
        parts.append(text(at(10**power, 10**low)[0], top + HEIGHT + 18, f"{10**power:,}", anchor="middle"))
    for name, line in lines.items():
        places = [at(count, value) for count, value in line]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[name]}"/>' for x, y in places]
    return parts


def points(results, column, name):
    found = []
    for result in results:
        value = None if summary.failure(result, name) else summary.median(result, name, column.key)
        if value:
            found.append((int(result["variant"].split("-")[1]), value))
    return sorted(found)


def decades(values):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def text(x, y, content, size=12, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(content)}</text>'
