"""One result as a Markdown table: medians, and for flarena the ratio to the best peer."""

import summary

LEGEND = "Values are medians. **Bold** is the best peer of a column. For flarena the ratio to that peer follows.\n"


def markdown(result):
    heads = ["contender"] + [column.title for column in summary.columns(result)]
    rows = [[c["title"]] + cells(result, c) for c in result["contenders"]]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    runs = len(result["rounds"])
    how = "1 run" if runs == 1 else f"{runs} interleaved runs, medians"
    lines = [f"**{result['workload']}. {result['title']}** ({how})", ""]
    lines.append(line(heads, widths))
    lines.append("|" + "|".join("-" * (w + 1) + (":" if i else "-") for i, w in enumerate(widths)) + "|")
    lines += [line(row, widths) for row in rows]
    failures = [(c["title"], summary.failure(result, c["name"])) for c in result["contenders"]]
    failures = [f"- {title} failed: {why}" for title, why in failures if why]
    lines += ["", *failures] if failures else []
    return "\n".join(lines) + "\n"


def line(cells_of_row, widths):
    padded = [cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(cells_of_row, widths))]
    return "| " + " | ".join(padded) + " |"


def cells(result, contender):
    name = contender["name"]
    if summary.failure(result, name):
        return ["failed"] * len(result["columns"])
    return [cell(result, column, name, contender["ours"]) for column in summary.columns(result)]


def cell(result, column, name, is_flarena):
    value = summary.median(result, name, column.key)
    if value is None:
        return "-"
    text = f"{value:.{column.digits}f}"
    if not is_flarena:
        return f"**{text}**" if name == summary.best_peer(result, column) and not result["references"] else text
    share = summary.ratio(result, column, name)
    return text if share is None else f"{text} ({share:.2f} x)"
