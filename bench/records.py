"""Records of plain Python, without NumPy: in each round four threads make documents of 1 to 60 KB, which the main
thread joins into batches of up to 1 MB. One document of a hundred lives for three rounds.
"""

import argparse
import random
from concurrent.futures import ThreadPoolExecutor

import rounds

THREADS = 4
MB = 1 << 20


def documents(number, thread, total_bytes):
    chance, made, made_bytes = random.Random(number * THREADS + thread), [], 0
    while made_bytes < total_bytes:
        made.append({"id": len(made), "text": b"%d" % (len(made) % 10) * chance.randrange(1 << 10, 60 << 10)})
        made_bytes += len(made[-1]["text"])
    return made


def batches(made):
    """Joins the documents to blocks of up to 1 MB, and drops each that was joined."""
    batch, batch_bytes = [], 0
    while made:
        batch.append(made.pop()["text"])
        batch_bytes += len(batch[-1])
        if batch_bytes >= MB or not made:
            yield b"".join(batch)
            batch, batch_bytes = [], 0


class Service:
    """The threads and some of the documents outlive a round."""

    def __init__(self, megabytes):
        self.megabytes, self.pool, self.kept = megabytes, ThreadPoolExecutor(THREADS), []

    def round(self, number):
        share = self.megabytes * MB // THREADS
        parts = self.pool.map(lambda thread: documents(number, thread, share), range(THREADS))
        made = [document for part in parts for document in part]
        self.kept.append(made[::100])
        del self.kept[:-3]
        random.Random(number).shuffle(made)
        joined = list(batches(made))
        assert sum(map(len, joined)) >= self.megabytes * MB


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=200)
    options = parser.parse_args()
    rounds.report(**rounds.run(options.rounds, Service(options.megabytes).round, 0.3, 0))


if __name__ == "__main__":
    main()
