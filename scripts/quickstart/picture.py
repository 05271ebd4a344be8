"""picture.py PLAIN_FOLDER FLARENA_FOLDER PICTURE.svg: the memory of both jobs over time, from measure.py's samples."""

import json
import os
import sys

MB = 2**20
WIDTH, HEIGHT = 900, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 64, 44
SERIES = (("plain glibc", "#9a9a9a"), ("flarena, jemalloc mode", "#d62246"))
# The background makes it readable on light and on dark pages.
PAPER, INK, GRID = "#ffffff", "#222222", "#e4e4e4"


def main(plain, flarena, picture):
    measures = [read(folder) for folder in (plain, flarena)]
    with open(picture, "w") as file:
        file.write(svg(measures))


def read(folder):
    with open(os.path.join(folder, "measures.json")) as file:
        return json.load(file)


def svg(measures):
    seconds = max(measure["pss"][-1][0] for measure in measures)
    # A grid line above the highest point.
    top_mb = (int(max(measure["peak_pss_bytes"] for measure in measures) / MB) // 500 + 1) * 500

    def x(at):
        return LEFT + (WIDTH - LEFT - RIGHT) * at / seconds

    def y(mb):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * mb / top_mb

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        text(LEFT, 24, "Memory of a whole NVFlare job (summed PSS of all its processes), MB", size=16),
    ]
    for mb in range(0, top_mb + 1, 500):
        parts.append(line(LEFT, y(mb), WIDTH - RIGHT, y(mb)))
        parts.append(text(LEFT - 8, y(mb) + 4, f"{mb:,}", anchor="end"))
    for second in range(0, int(seconds) + 1, 5):
        parts.append(text(x(second), HEIGHT - BOTTOM + 18, f"{second} s", anchor="middle"))
    for place, (name, colour) in enumerate(SERIES):
        measure = measures[place]
        points = " ".join(f"{x(at):.1f},{y(size / MB):.1f}" for at, size in measure["pss"])
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>'
        )
        peak, mean = (measure[key] / MB for key in ("peak_pss_bytes", "mean_pss_bytes"))
        at = LEFT + place * 390
        parts.append(f'<line x1="{at}" x2="{at + 24}" y1="45" y2="45" stroke="{colour}" stroke-width="4"/>')
        parts.append(
            text(at + 32, 50, f"{name}: peak {peak:,.0f}, mean {mean:,.0f}, {measure['cpu_s']:.0f} s of CPU", size=12)
        )
    return "\n".join([*parts, "</svg>\n"])


def line(x1, y1, x2, y2):
    return f'<line x1="{x1}" x2="{x2}" y1="{y1:.1f}" y2="{y2:.1f}" stroke="{GRID}"/>'


def text(x, y, content, size=13, anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{INK}">{content}</text>'


main(*sys.argv[1:])
