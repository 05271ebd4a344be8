"""A sweep with joblib: in each round two workers return hundreds of arrays of 400 KB, which the parent then drops."""

import argparse
import statistics

import numpy
import rounds
from joblib import Parallel, delayed


def one(number):
    return numpy.ones(50_000) * number


class Sweep:
    def __init__(self, arrays):
        self.arrays, self.checksum, self.dropped_bytes = arrays, 0.0, []

    def round(self, _number):
        results = Parallel(n_jobs=2)(delayed(one)(number) for number in range(self.arrays))
        assert all(array[-1] == number for number, array in enumerate(results))
        self.checksum += sum(float(array[0]) for array in results)
        del results
        self.dropped_bytes.append(rounds.status_bytes("VmRSS"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--arrays", type=int, default=600)
    parser.add_argument("--idle", type=float, default=0.3)
    parser.add_argument("--final-idle", type=float, default=0)
    options = parser.parse_args()
    sweep = Sweep(options.arrays)
    numbers = rounds.run(options.rounds, sweep.round, options.idle, options.final_idle)
    dropped_bytes = statistics.median(sweep.dropped_bytes)
    rounds.report(**numbers, dropped_bytes=dropped_bytes, rest_bytes=numbers["idle_bytes"], checksum=sweep.checksum)


if __name__ == "__main__":
    main()
