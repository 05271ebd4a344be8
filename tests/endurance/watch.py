"""watch.py FOLDER LIMIT_S COMMAND...: samples memory, threads, descriptors and mappings of a command each second.

For each process that lives for most of the run it prints the medians of the second and of the last fifth of the run.
All samples are in FOLDER/samples.jsonl. Exit status: the command's, or 1 when a process grew. A command that takes
longer than LIMIT_S is killed with all its processes, and the exit status is 124.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "bench"))
import measure  # noqa: E402

# Variation without growth: a governor, the last workers of a pool of 200, a connection, garbage between collections.
TOLERANCE = {
    "rss_bytes": lambda before: max(before * 0.2, 16 << 20),
    "threads": lambda before: max(before * 0.1, 3),
    "descriptors": lambda before: 5,
    # Fragmentation adds mappings: the library stops at a quarter of the 65530 that are allowed.
    "mappings": lambda before: 4096,
}
MIN_SAMPLES = 50


def sample_of(pid):
    """None when the process has ended."""
    try:
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.split(":", 1) for line in file)
        with open(f"/proc/{pid}/maps", "rb") as maps:
            mappings = maps.read().count(b"\n")
        return {
            "name": status["Name"].strip(),
            "rss_bytes": int(status["VmRSS"].split()[0]) * 1024,
            "threads": int(status["Threads"]),
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "mappings": mappings,
        }
    except (OSError, KeyError):
        return None


def watch(command, folder, limit_s):
    samples, started = {}, time.monotonic()
    with open(os.path.join(folder, "log"), "wb") as log, open(os.path.join(folder, "samples.jsonl"), "w") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while process.poll() is None:
            if time.monotonic() - started > limit_s:
                return 124, samples, limit_s
            for pid in measure.descendants(os.getpid()):
                seen = sample_of(pid)
                if seen is not None:
                    seen.update(pid=pid, at_s=round(time.monotonic() - started, 1))
                    samples.setdefault(pid, []).append(seen)
                    file.write(json.dumps(seen) + "\n")
            time.sleep(1)
    return process.returncode, samples, time.monotonic() - started


def fifth(values, number):
    """The NUMBER-th of five equal parts, from 0."""
    return values[len(values) * number // 5 : len(values) * (number + 1) // 5]


def judge(seen):
    """Prints the medians of one process. Returns the names of the values that grew."""
    grew, text = [], []
    for name, tolerance in TOLERANCE.items():
        values = [sample[name] for sample in seen]
        before, after = (statistics.median(fifth(values, number)) for number in (1, 4))
        unit, word = (1e6, " MB") if name == "rss_bytes" else (1, "")
        text.append(f"{name.replace('_bytes', '')} {before / unit:.0f} to {after / unit:.0f}{word}")
        if after > before + tolerance(before):
            grew.append(name)
    print(f"#   {seen[0]['name']} ({seen[0]['pid']}): {', '.join(text)}{''.join(f'; {n} GREW' for n in grew)}")
    return grew


def main(folder, limit_s, *command):
    # Processes that the command leaves behind are killed, also after SIGTERM.
    measure.adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        status, samples, seconds = watch(command, folder, float(limit_s))
    finally:
        measure.end_all()
    print(f"#   {seconds:.0f} s")
    long_lived = [
        seen
        for seen in samples.values()
        if len(seen) >= MIN_SAMPLES and seen[-1]["at_s"] - seen[0]["at_s"] > seconds / 2
    ]
    grew = [name for seen in long_lived for name in judge(seen)]
    if status == 0 and not long_lived:
        sys.exit(f"no process lived for {MIN_SAMPLES} samples")
    sys.exit(status or (1 if grew else 0))


main(*sys.argv[1:])
