"""h. NVFlare's 128 GB model at a small fraction: the peak of each process over the size of the model, and over clients.

The published job sends 64 arrays of 2 GB to 2 clients, 3 rounds. Here 64 equal arrays of some MB: peak = a + b x model
is fitted for each process. The extrapolation to 128 GB is one, and no measurement.
"""

import contextlib
import os

import measure
import nvflare_job
import summary
import tree
from model import Column, Variant
from places import BUILD

TITLE = "NVFlare 2.9, a model of 64 equal arrays, 3 rounds"
SHAPES = ("64x2MB", "64x4MB", "64x8MB", "64x16MB")
CLIENTS = (2, 4, 8, 16)
CLIENTS_SHAPE = "80x1MB"  # a 64th of the 5 GB in upstream's chart
ROUNDS = 3
FULL_GB, PUBLISHED = 128, {"server_mb": 5.5, "trainer_mb": 3.0}  # its clients trained in their own process
PEAKS = (
    Column("server_mb", "server peak MB"),
    Column("client_mb", "client job peak MB"),
    Column("trainer_mb", "trainer peak MB"),
    Column("cpu_s", "CPU s", digits=1),
)
FIELD = ("glibc", "jemalloc", "flarena-glibc", "flarena-jemalloc")


def add_arguments(group):
    group.add_argument("--shapes", metavar="64xSIZEMB,..", help="h: models (default " + ",".join(SHAPES) + ")")
    group.add_argument("--clients", metavar="N,N", help="h: simulated clients (default 2,4,8,16); 0: none")


def variants(options):
    for shape in options.names("shapes") or SHAPES:
        count, size = parsed(shape)
        name, title = f"model-{count * size:05}", f"{count} arrays of {size} MB, 2 clients, external trainers"
        yield Variant(name, title, PEAKS, run_of(shape, 2, False), options.repeats(1, 1), FIELD)
    for clients in options.numbers("clients") or CLIENTS:
        if clients:
            title = f"80 arrays of 1 MB, {clients} clients, trained in their job's process"
            run = run_of(CLIENTS_SHAPE, clients, True)
            yield Variant(f"clients-{clients:02}", title, PEAKS[:2], run, options.repeats(1, 1), FIELD)


def parsed(shape):
    """How many arrays, and the MB of each."""
    count, size = shape.removesuffix("MB").split("x")
    return int(count), int(size)


class RoleSampler(measure.Sampler):
    """The highest resident set of each process, as the kernel keeps it, by the process's role."""

    def __init__(self, pid, library):
        super().__init__(pid, library)
        self.peaks = {}

    def sample(self):
        super().sample()
        for pid in tree.descendants(os.getpid()):
            with contextlib.suppress(OSError, StopIteration):
                role, peak = role_of(pid), high_water(pid)
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


def high_water(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))


def run_of(shape, clients, in_process):
    def run(contender):
        python, model = nvflare_job.python(), nvflare_job.model_file(shape)
        command = [python, nvflare_job.PROGRAM, "--model", model]
        command += ["--rounds", str(ROUNDS), "--train-s", "0", "--clients", str(clients)]
        command += ["--in-process"] if in_process else []
        sampler = []

        def sample(pid, library):
            sampler.append(RoleSampler(pid, library))
            return sampler[0]

        with nvflare_job.fresh_workspace() as workspace:
            command += ["--workspace", workspace]
            done = measure.run(contender, command, sampler=sample, timeout_s=600, sample_s=0.25)
            nvflare_job.last_round(workspace, done.output, ROUNDS)
        peaks = {f"{role}_mb": peak / measure.MB for role, peak in sampler[0].peaks.items()}
        return {**peaks, "cpu_s": done.cpu_s}

    return run


def report(results):
    """build/bench/large-model.md: the lines through the peaks, and where they lead."""
    sizes = {int(r["variant"].split("-")[1]): r for r in results if r["variant"].startswith("model-")}
    if len(sizes) < 3:
        return
    lines = [f"| contender | process | a MB | b | b published | at {FULL_GB} GB |", "|---|---|---:|---:|---:|---:|"]
    for contender in next(iter(sizes.values()))["contenders"]:
        for column in PEAKS[:3]:
            points = [(size, summary.median(result, contender["name"], column.key)) for size, result in sizes.items()]
            points = [point for point in points if point[1]]
            if len(points) < 3:
                continue
            a, b = line_through(points)
            lines.append(
                f"| {contender['title']} | {column.title.removesuffix(' peak MB')} | {a:.0f} | {b:.2f} "
                f"| {PUBLISHED.get(column.key, '-')} | {(a + b * FULL_GB * 1024) / 1024:.0f} GB |"
            )
    with open(os.path.join(BUILD, "large-model.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def line_through(points):
    """Least squares: (a, b) of y = a + b x."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    b = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return mean_y - b * mean_x, b
