"""h. NVFlare's 128 GB model at a small scale: peak of each process by size of the model and by number of clients.

The published job sends 64 arrays of 2 GB to 2 clients, 3 rounds. Here the 64 arrays have a few MB, and
peak = a + b x model is fitted for each process. 128 GB is extrapolated, not measured. With --offload and
--offload-clients the arrays are PyTorch tensors, which the server keeps in memory or on disk. The variant `script` is
the same job over more rounds: summed PSS of all processes, with the contenders of workload c.
"""

import contextlib
import glob
import os

import machine
import measure
import nvflare_job
import summary
from model import Column, Failed, Variant

TITLE = "NVFlare 2.9, a model of 64 equal arrays, 3 rounds"
SHAPES = ("64x2MB", "64x4MB", "64x8MB", "64x16MB")
CLIENTS = (2, 4, 8, 12, 16)
CLIENTS_SHAPE = "80x1MB"  # a 64th of the 5 GB in NVFlare's chart
CHART_GB = 5
CHARTS = {"clients": {4: 45, 8: 62, 12: 88, 16: 115}, "clients-offload-on": {16: 21}}  # clients: GB of the server
ROUNDS = 3
SCRIPT_SHAPE, SCRIPT_ROUNDS = "64x2MB", 8
FULL_GB, PUBLISHED = 128, {"server_mb": 5.5, "trainer_mb": 3.0}  # models; published with external trainers
PEAKS = (
    Column("server_mb", "server peak MB"),
    Column("client_mb", "client job peak MB"),
    Column("trainer_mb", "trainer peak MB"),
    Column("cpu_s", "CPU s", digits=1),
)
CONTENDERS = ("glibc", "jemalloc", "flarena-glibc", "flarena-jemalloc")
AVAILABLE_MIN_BYTES = 5 << 29  # a run that leaves less memory is ended before the kernel kills other processes


def add_arguments(group):
    group.add_argument("--shapes", metavar="64xSIZEMB,..", help=f"h: models (default {','.join(SHAPES)}); 0: none")
    clients = ",".join(map(str, CLIENTS))
    group.add_argument("--clients", metavar="N,N", help=f"h: simulated clients (default {clients}); 0: none")
    group.add_argument(
        "--offload",
        metavar="64xSIZEMB,..",
        help="h: models of PyTorch tensors, disk offload off and on (default none, because it installs PyTorch)",
    )
    group.add_argument(
        "--offload-clients",
        metavar="N,N",
        help="h: simulated clients with tensors, disk offload on and off (default none)",
    )


def variants(options):
    repeats = options.repeats(1, 1)
    count, size = parsed(SCRIPT_SHAPE)
    title = f"{count} arrays of {size} MB, 2 clients, external trainers, {SCRIPT_ROUNDS} rounds, all processes"
    run = nvflare_job.run_of(SCRIPT_SHAPE, SCRIPT_ROUNDS, "--train-s", "0")
    yield Variant("script", title, nvflare_job.COLUMNS, run, options.repeats(1, 2), nvflare_job.CONTENDERS)
    for shape in chosen(options.names("shapes"), SHAPES):
        count, size = parsed(shape)
        title = f"{count} arrays of {size} MB, 2 clients, external trainers"
        yield Variant(f"model-{count * size:05}", title, PEAKS, run_of(shape, 2), repeats, CONTENDERS)
    for clients in map(int, chosen(options.names("clients"), CLIENTS)):
        title = f"80 arrays of 1 MB, {clients} clients, trained in their job's process"
        run = run_of(CLIENTS_SHAPE, clients, "--in-process")
        yield Variant(f"clients-{clients:02}", title, PEAKS[:2], run, repeats, CONTENDERS)
    for shape in options.names("offload"):
        count, size = parsed(shape)
        for offload in ("off", "on"):
            title = f"{count} tensors of {size} MB, 2 clients, external trainers, disk offload {offload}"
            run = run_of(shape, 2, "--torch", *(("--offload",) if offload == "on" else ()))
            yield Variant(f"tensors-{offload}-{count * size:05}", title, PEAKS, run, repeats, CONTENDERS)
    for clients in map(int, options.names("offload_clients")):
        for offload in ("on", "off"):
            title = f"80 tensors of 1 MB, {clients} clients, trained in their job's process, disk offload {offload}"
            kept = ("--offload",) if offload == "on" else ()
            run = run_of(CLIENTS_SHAPE, clients, "--in-process", "--torch", *kept)
            yield Variant(f"clients-offload-{offload}-{clients:02}", title, PEAKS[:2], run, repeats, CONTENDERS)


def chosen(names, default):
    """The names, or the default without any. "0" selects nothing."""
    return [name for name in names or default if name != "0"]


def parsed(shape):
    """Number of arrays, and MB of each."""
    count, size = shape.removesuffix("MB").split("x")
    return int(count), int(size)


class RoleSampler(measure.Sampler):
    """Samples the highest VmHWM of all processes by role."""

    def __init__(self, pid, library, workspace):
        super().__init__(pid, library)
        self.workspace, self.peaks, self.has_offloaded = workspace, {}, False

    def sample(self):
        super().sample()
        if machine.bytes_of("/proc/meminfo", "MemAvailable") < AVAILABLE_MIN_BYTES:
            raise Failed("the machine runs out of memory")
        self.has_offloaded = self.has_offloaded or bool(glob.glob(self.workspace + "/nvflare_tensor_offload_*/*/*"))
        for pid in measure.descendants(os.getpid()):
            with contextlib.suppress(OSError, StopIteration):
                role, peak = role_of(pid), machine.bytes_of(f"/proc/{pid}/status", "VmHWM")
                if role:
                    self.peaks[role] = max(self.peaks.get(role, 0), peak)


def role_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        command = file.read().replace(b"\0", b" ")
    if b"train.py" in command:
        return "trainer"
    if b"simulator_worker" in command:
        return "client"
    return "server" if b"simulator" in command else None


def run_of(shape, clients, *arguments):
    def run(contender):
        python = nvflare_job.python(torch="--torch" in arguments)
        command = [python, nvflare_job.PROGRAM, "--model", nvflare_job.model_file(shape)]
        command += ["--rounds", str(ROUNDS), "--train-s", "0", "--clients", str(clients), *arguments]
        with nvflare_job.fresh_workspace() as workspace:
            command += ["--workspace", workspace]
            sampler = []

            def sample(pid, library):
                sampler.append(RoleSampler(pid, library, workspace))
                return sampler[0]

            # For the offloaded tensors: a /tmp on tmpfs would keep them in memory.
            extra = {"TMPDIR": workspace}
            done = measure.run(contender, command, extra, sampler=sample, timeout_s=600, sample_s=0.25)
            nvflare_job.last_round(workspace, done.output, ROUNDS)
        if sampler[0].has_offloaded != ("--offload" in arguments):
            raise Failed("tensors were on disk without offload, or not on disk with it")
        peaks = {f"{role}_mb": peak / measure.MB for role, peak in sampler[0].peaks.items()}
        return {**peaks, "cpu_s": done.cpu_s}

    return run


def tables(results):
    """Markdown tables: the fitted lines with their values at 128 GB, and the server's peak by number of clients."""
    kinds = {}
    for result in results:
        if result["workload"] == "h" and result["variant"] != "script":
            kind, _, number = result["variant"].rpartition("-")
            kinds.setdefault(kind, {})[int(number)] = result
    by_number = {kind: sizes for kind, sizes in kinds.items() if kind.startswith("clients")}
    found = [lines(sizes, kind) for kind, sizes in kinds.items() if kind not in by_number and len(sizes) > 2]
    return found + [by_clients(sizes, kind) for kind, sizes in by_number.items()]


def lines(sizes, kind):
    """The line through the peaks of each process: a is MB at size 0, b is MB per MB of the model."""
    published = PUBLISHED if kind == "model" else {}
    rows = [f"**h. Fitted lines, {kind}**\n", "| contender | process | a MB | b | b published | at 128 GB |"]
    rows.append("|---|---|---:|---:|---:|---:|")
    for contender in next(iter(sizes.values()))["contenders"]:
        for column in PEAKS[:3]:
            points = [(size, summary.median(result, contender["name"], column.key)) for size, result in sizes.items()]
            points = [point for point in points if point[1]]
            if len(points) < 3:
                continue
            a, b = line_through(points)
            rows.append(
                f"| {contender['title']} | {column.title.removesuffix(' peak MB')} | {a:.0f} | {b:.2f} "
                f"| {published.get(column.key, '-')} | {(a + b * FULL_GB * 1024) / 1024:.0f} GB |"
            )
    return "\n".join(rows) + "\n"


def by_clients(results, kind):
    """The server's peak divided by the size of the model, for each number of clients."""
    count, size = parsed(CLIENTS_SHAPE)
    contenders = next(iter(results.values()))["contenders"]
    heads = ["clients", *(contender["title"] for contender in contenders), "published"]
    rows = ["| " + " | ".join(heads) + " |", "|" + "---:|" * len(heads)]
    for clients, result in sorted(results.items()):
        peaks = [summary.median(result, contender["name"], "server_mb") for contender in contenders]
        cells = [f"{peak / (count * size):.1f}" if peak else "-" for peak in peaks]
        chart = CHARTS.get(kind, {})
        cells.append(f"{chart[clients] / CHART_GB:.1f}" if clients in chart else "-")
        rows.append("| " + " | ".join([str(clients), *cells]) + " |")
    return "\n".join([f"**h. Server peak in models by number of clients, {kind}**\n", *rows]) + "\n"


def line_through(points):
    """Least squares: (a, b) of y = a + b x."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    b = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - b * mean_x, b
