"""Runs three programs under limits of a memory control group, without the library and under each contender.

    sweep.py BENCH LIBRARY HOOKS PROGRAM:MB,.. ...      BENCH holds bench/ and scripts/bench/cgroup.py

Prints a line for each run: `program limit_mb contender survives|killed|waits`. Exits 1 if one fails for another reason,
or if flarena reports something, for example that its hooks cannot be used.
"""

import os
import subprocess
import sys

BENCH, LIBRARY, HOOKS = sys.argv[1:4]
sys.path.insert(0, BENCH)
import cgroup  # noqa: E402

WIRE = "/tmp/wire"
PROGRAMS = {
    "joblib": ["joblib_rounds.py", "--rounds", "2", "--arrays", "300"],
    "fl_rounds": ["fl_rounds.py", "--wire", WIRE, "--rounds", "2", "--idle", "0.3", "--final-idle", "0"],
    "records": ["records.py", "--rounds", "2", "--megabytes", "100"],
}
JEMALLOC = f"/usr/lib/{os.uname().machine}-linux-gnu/libjemalloc.so.2"
FLARENA = {"LD_PRELOAD": LIBRARY, "PYTHONPATH": os.pathsep.join(filter(None, [HOOKS, os.environ.get("PYTHONPATH")]))}
CONTENDERS = {
    "glibc": {},
    "trims": {"MALLOC_ARENA_MAX": "2", "BENCH_TRIM": "1"},
    "libjemalloc": {"LD_PRELOAD": JEMALLOC},
    "flarena-glibc": {**FLARENA, "FLARENA_ALLOCATOR": "glibc"},
    "flarena-jemalloc": {**FLARENA, "FLARENA_ALLOCATOR": "jemalloc"},
}
TIMEOUT_S = int(os.environ.get("TIMEOUT_S", "60"))
KILLED = ("MemoryError", "TerminatedWorkerError", "std::bad_alloc")


def outcome(command, settings, limit_mb):
    """A program that is not killed may still wait forever: at its limit the kernel reads its code again and again."""
    with cgroup.limited(limit_mb << 20) as prefix:
        environment = {**os.environ, **settings}
        try:
            run = subprocess.run(
                [*prefix, *command], env=environment, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return "waits"
    if "flarena:" not in run.stderr:
        if run.returncode == 0:
            return "survives"
        if run.returncode == -9 or any(sign in run.stderr for sign in KILLED):
            return "killed"
    return "fails: " + " ".join(run.stderr.split())[-300:]


def main():
    failed = False
    subprocess.run([sys.executable, f"{BENCH}/fl_rounds.py", "--wire", WIRE, "--make", "64x1MB"], check=True)
    for argument in sys.argv[4:]:
        name, limits = argument.split(":")
        program, *arguments = PROGRAMS[name]
        for limit_mb in map(int, limits.split(",")):
            for contender, settings in CONTENDERS.items():
                result = outcome([sys.executable, f"{BENCH}/{program}", *arguments], settings, limit_mb)
                print(name, limit_mb, contender, result, flush=True)
                failed |= result.startswith("fails")
    return failed


sys.exit(main())
