"""Feeds the report what would make a careless reader grow, and looks at the memory it took."""

import resource
import subprocess
import sys

MARKER = ('{"v":1,"t":1.5,"pid":%d,"start":%d,"proc":"TR","site":"s","round":%d,"stage":"%s",'
          '"rss_bytes":1048576,"seq":%d}\n')
MB = 1024 * 1024


def peak_after(chunks):
    command = [sys.argv[1], "report", "--json", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:
        for chunk in chunks:
            process.stdin.write(chunk)
        process.stdin.close()
        status = process.wait()
    assert status in (0, 3), f"exit status {status}"
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def lines(make, count):
    for start in range(0, count, 1000):
        yield "".join(MARKER % make(i) for i in range(start, start + 1000)).encode()


# From the smallest to the largest: the peak of children only ever rises.
for name, limit, chunks in (
        ("an endless line", 40 * MB, (b"x" * MB for _ in range(200))),
        ("a stage of its own per line", 60 * MB, lines(lambda i: (7, 7, i, f"step {i}", i), 200_000)),
        ("a process of its own per line", 400 * MB, lines(lambda i: (i, i, 0, "send", 0), 250_000)),
):
    peak = peak_after(chunks)
    assert peak < limit, f"{name}: {peak / MB:.0f} MB"
    print(f"{name}: {peak / MB:.0f} MB")
