"""table.py PLAIN_FOLDER FLARENA_FOLDER: prints the figures of measure.py and of the trainers for both jobs."""

import json
import os
import sys

HEADER = f"{'glibc':>9}{'flarena':>11}{'change':>11}"
MB = 2**20
# Two runs of the same job differ by about this much.
NOISE_PERCENT = 8


def main(*folders):
    stages = [read_stages(folder) for folder in folders]
    measures = [read_measures(folder) for folder in folders]
    print_stages(*stages)
    print_measures(*measures)


def read_stages(folder):
    with open(os.path.join(folder, "stages.jsonl")) as lines:
        notes = [json.loads(line) for line in lines]
    return {(note["site"], note["round"], note["stage"]): note["rss_bytes"] for note in notes}


def read_measures(folder):
    with open(os.path.join(folder, "measures.json")) as file:
        return json.load(file)


def print_stages(plain, flarena):
    sites = sorted({site for site, _, _ in plain | flarena})
    rounds = sorted({number for _, number, _ in plain | flarena})
    print(bold("\n  RSS of each trainer after each stage, MB"))
    print(dim("  " + " " * 16 + "".join(f"   {site:^31}" for site in sites)))
    print(dim(f"  {'round':<7}{'stage':<9}" + f"   {HEADER}" * len(sites)))
    for number in rounds:
        for stage in ("receive", "train", "send"):
            cells = ((plain.get((site, number, stage)), flarena.get((site, number, stage))) for site in sites)
            row = "".join("   " + pair(before, after, MB, 0) for before, after in cells)
            print(f"  {number if stage == 'receive' else '':<7}{stage:<9}{row}")


def print_measures(plain, flarena):
    print(bold("\n  The whole job, all its processes"))
    print(dim(f"  {'':<38}{HEADER}"))
    for label, key, unit, digits in (
        ("peak of the summed PSS, MB", "peak_pss_bytes", MB, 0),
        ("mean of the summed PSS, MB", "mean_pss_bytes", MB, 0),
        ("CPU time, s", "cpu_s", 1, 1),
        ("elapsed time, s", "wall_s", 1, 1),
    ):
        print(f"  {label:<38}{pair(plain[key], flarena[key], unit, digits)}")
    print(dim(f"\n  One run of each; the same job varies by about {NOISE_PERCENT} % from run to run."))


def pair(before, after, unit, digits):
    values = ["-" if value is None else f"{value / unit:,.{digits}f}" for value in (before, after)]
    return f"{values[0]:>9}{values[1]:>11}{change(before, after)}"


def change(before, after):
    if not before or after is None:
        return " " * 11
    percent = 100 * (after - before) / before
    text = f"{percent:+9.0f} %"
    if abs(percent) < NOISE_PERCENT:
        return dim(text)
    return green(text) if percent < 0 else red(text)


def style(code):
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return lambda text: f"\033[{code}m{text}\033[0m" if coloured else text


bold, dim, green, red = style(1), style(2), style(32), style(31)

main(*sys.argv[1:])
