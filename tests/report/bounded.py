"""Gives the report endless lines and many names, and checks its peak memory."""

import resource
import subprocess
import sys

MARKER = (
    '{"v":1,"t":1.5,"pid":%d,"start":%d,"proc":"TR","site":"s","round":%d,"stage":"%s","rss_bytes":1048576,"seq":%d}\n'
)
MB = 1024 * 1024


def peak_after(chunks):
    command = [sys.argv[1], "report", "--json", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        for chunk in chunks:
            process.stdin.write(chunk)
        process.stdin.close()
        status = process.wait()
    assert status in (0, 3), f"exit status {status}"
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def lines(make, count):
    for start in range(0, count, 1000):
        yield "".join(MARKER % make(i) for i in range(start, start + 1000)).encode()


# In the order of their peaks, because the peak over all children never falls.
for name, limit, chunks in (
    ("an endless line", 40 * MB, (b"x" * MB for _ in range(200))),
    ("a different stage on each line", 60 * MB, lines(lambda i: (7, 7, i, f"step {i}", i), 200_000)),
    ("a different process on each line", 400 * MB, lines(lambda i: (i, i, 0, "send", 0), 250_000)),
):
    peak = peak_after(chunks)
    assert peak < limit, f"{name}: {peak / MB:.0f} MB"
    print(f"{name}: {peak / MB:.0f} MB")
