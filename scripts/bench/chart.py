"""Draws every column that has a goal as one row: each contender's value divided by the best peer's.

The vertical line at 1 is the best peer (micro: the same allocator alone), and left of it is better. The tick is the
goal. Columns where more is better are inverted.
"""

import math
from xml.sax.saxutils import escape

import summary

LOW, HIGH = 0.5, 8.0  # values outside are drawn at the edge
LABELS, PLOT, ROW, TOP = 470, 560, 17, 114  # the legend has three lines
PEER_SYMBOLS = {
    "glibc": ("circle", "#b8b8b8"),
    "glibc-trim": ("circle", "#6f6f6f"),
    "glibc-fixed": ("circle", "#dddddd"),
    "jemalloc": ("square", "#9db7d5"),
    "jemalloc-bg": ("square", "#5b86b8"),
    "jemalloc-plain": ("square", "#33557d"),
    "mimalloc": ("diamond", "#c9a26b"),
    "mimalloc3": ("diamond", "#8c6a2f"),
    "tcmalloc": ("triangle", "#8fb08a"),
    "tcmalloc-google": ("triangle", "#3f7a38"),
    "tbbmalloc": ("triangle", "#5f7d8f"),
    "snmalloc": ("diamond", "#8fa3a0"),
}
FLARENA_SYMBOLS = {"flarena-glibc": ("circle", "#d62246"), "flarena-jemalloc": ("square", "#7a1fa2")}
FLARENA_SHIFT = {"flarena-glibc": -2, "flarena-jemalloc": 2}  # keeps both visible where their values are equal
SYMBOLS = {**PEER_SYMBOLS, **FLARENA_SYMBOLS}


def svg(results):
    rows = [row for result in results for row in rows_of(result)]
    height = TOP + ROW * (len(rows) + len({r[0] for r in rows})) + 30
    titles = titles_of(results)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABELS + PLOT + 40}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        text(12, 22, "flarena and its peers: each value divided by the best peer's in the same run", size=15),
        text(
            12,
            40,
            "Left of the line at 1: better than every peer (micro: than the same allocator alone). "
            "Green tick: the goal. Log scale.",
            fill="#555",
        ),
        *legend(titles),
        *grid(height),
    ]
    parts += body(rows)
    return "\n".join([*parts, "</svg>\n"])


def rows_of(result):
    """(workload, variant, column, {contender: relative cost}, goal as a cost)."""
    found = []
    for column in summary.columns(result):
        if column.goal is None:
            continue
        # Contenders that change a setting of the machine have their own tables and are not drawn.
        drawn = [c["name"] for c in result["contenders"] if c["name"] in SYMBOLS]
        costs = {name: cost(result, column, name) for name in drawn}
        costs = {name: value for name, value in costs.items() if value}
        if not costs:
            continue
        goal = column.goal if column.better == "less" else 1 / column.goal
        found.append((f"{result['workload']}. {result['workload_title']}", result["title"], column.title, costs, goal))
    return found


def cost(result, column, name):
    if summary.failure(result, name):
        return None
    if result["references"] and name not in result["references"]:
        return None
    share = summary.ratio(result, column, name)
    return share if share is None or column.better == "less" else 1 / share


def titles_of(results):
    return {c["name"]: c["title"] for result in results for c in result["contenders"]}


def body(rows):
    parts, y, workload, variant = [], TOP, None, None
    for row_workload, row_variant, column, costs, goal in rows:
        if row_workload != workload:
            workload, y = row_workload, y + ROW
            parts.append(text(12, y - 4, row_workload, size=12, weight="bold"))
        if row_variant != variant:
            variant = row_variant
            parts.append(text(20, y + 12, shortened(row_variant), fill="#222"))
        parts.append(text(LABELS - 10, y + 12, column, anchor="end", fill="#444"))
        parts.append(f'<line x1="{LABELS}" x2="{LABELS + PLOT}" y1="{y + 16.5}" y2="{y + 16.5}" stroke="#eeeeee"/>')
        at = x_of(goal)
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y + 2}" y2="{y + 15}" stroke="#2a9d3f" stroke-width="2"/>'
        )
        for name in sorted(costs, key=lambda n: n in FLARENA_SYMBOLS):
            shift = FLARENA_SHIFT.get(name, 0)
            parts.append(symbol(x_of(costs[name]), y + 8.5 + shift, *SYMBOLS[name], is_flarena=name in FLARENA_SYMBOLS))
        y += ROW
    return parts


def shortened(title, limit=56):
    title = title.replace(", touched", "").replace("NumPy FL rounds, ", "").replace(", external trainers", "")
    return title if len(title) <= limit else title[: limit - 1] + "…"


def x_of(value):
    inside = min(max(value, LOW), HIGH)
    return LABELS + PLOT * math.log(inside / LOW) / math.log(HIGH / LOW)


def grid(height):
    parts = []
    for value in (0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8):
        stroke = 'stroke="#333" stroke-width="1.2"' if value == 1 else 'stroke="#dddddd"'
        at = x_of(value)
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - 24}" {stroke}/>')
        label = {LOW: f"≤ {LOW}", HIGH: f"≥ {HIGH:g}"}.get(value, f"{value:g}")
        parts.append(text(at, height - 8, label + " x", anchor="middle", fill="#555"))
    return parts


def legend(titles):
    parts, x, y = [], 16, 58
    for name in SYMBOLS:
        if name not in titles:
            continue
        width = 24 + 6.2 * len(titles[name])
        if x + width > LABELS + PLOT:
            x, y = 16, y + 18
        parts += [symbol(x, y, *SYMBOLS[name], is_flarena=name in FLARENA_SYMBOLS), text(x + 10, y + 4, titles[name])]
        x += width
    return parts


def symbol(x, y, shape, fill, is_flarena):
    r, edge = (5, "#000") if is_flarena else (4, "#777")
    style = f'fill="{fill}" stroke="{edge}" stroke-width="0.6" fill-opacity="0.9"'
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y}" r="{r}" {style}/>'
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "triangle": ((0, -1.2), (1.2, 1), (-1.2, 1)),
    }[shape]
    points = " ".join(f"{x + r * dx:.1f},{y + r * dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {style}/>'


def text(x, y, content, size=11, weight="normal", anchor="start", fill="#000"):
    place = f'x="{x:.1f}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{fill}"'
    return f"<text {place}>{escape(content)}</text>"
