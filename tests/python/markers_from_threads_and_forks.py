import os
import threading

import flarena
import markers

THREADS, EACH, CHILDREN = 8, 100, 3


def mark_all():
    for number in range(EACH):
        flarena.mark("busy", f"site-{threading.get_ident()}", number)


def run_threads():
    threads = [threading.Thread(target=mark_all) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


flarena.mark("before fork")
children = []
for _ in range(CHILDREN):
    child = os.fork()
    if child == 0:
        run_threads()
        os._exit(0)
    children.append(child)
run_threads()
for child in children:
    assert os.waitpid(child, 0)[1] == 0

busy = [m for m in markers.own(os.environ["FLARENA_MARKER_FILE"]) if m["stage"] == "busy"]
assert len(busy) == THREADS * EACH * (CHILDREN + 1), len(busy)
assert {m["pid"] for m in busy} == {os.getpid(), *children}
own = sorted(m["seq"] for m in busy if m["pid"] == os.getpid())
assert len(set(own)) == len(own)
