"""A graph of files and its circles. Edges: {file: {used file: line of the first use}}."""


def circles(edges):
    """Each knot of nodes that reach each other, as the shortest circle through its first node."""
    return [shortest_circle(edges, knot) for knot in knots(edges)]


def reachable(edges, start):
    found, todo = set(), [start]
    while todo:
        for node in edges.get(todo.pop(), ()):
            if node not in found:
                found.add(node)
                todo.append(node)
    return found


def knots(edges):
    """The sets of two or more nodes of which each reaches all others. The trees here have some 100 files."""
    reach = {node: reachable(edges, node) for node in sorted(edges)}
    found = []
    for node in sorted(edges):
        knot = {other for other in reach[node] if node in reach.get(other, ())}
        if len(knot) > 1 and knot not in found:
            found.append(knot)
    return found


def shortest_circle(edges, knot):
    """A shortest way from the knot's first node back to it: [first, ..., first]."""
    first = min(knot)
    ways = [[first]]
    while True:
        longer = []
        for way in ways:
            for node in sorted(edges[way[-1]]):
                if node == first:
                    return [*way, first]
                if node in knot and node not in way:
                    longer.append([*way, node])
        ways = longer


def collapsed(edges, folder):
    """The graph of one folder: everything below a child folder is one node, and so are `x.rs` and `x/`."""

    def node(path):
        if folder and not path.startswith(folder + "/"):
            return None
        name = path[len(folder) + 1 if folder else 0 :].partition("/")[0]
        return name.partition(".")[0]

    graph = {}
    for source, targets in edges.items():
        for target, line in targets.items():
            a, b = node(source), node(target)
            if a is not None and b is not None and a != b:
                graph.setdefault(a, {}).setdefault(b, (source, line, target))
    return graph


def folders(edges):
    """Every folder that holds files, the root ("") first."""
    found = {""}
    for path in edges:
        parts = path.split("/")[:-1]
        found.update("/".join(parts[: i + 1]) for i in range(len(parts)))
    return sorted(found)
