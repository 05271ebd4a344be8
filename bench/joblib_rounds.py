"""A sweep with joblib: in each round two workers return hundreds of arrays of 400 KB, which the parent then drops."""

import argparse

import numpy
import rounds
from joblib import Parallel, delayed


def one(number):
    return numpy.ones(50_000) * number


def one_round(arrays):
    results = Parallel(n_jobs=2)(delayed(one)(number) for number in range(arrays))
    assert all(array[-1] == number for number, array in enumerate(results))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--arrays", type=int, default=600)
    options = parser.parse_args()
    rounds.report(**rounds.run(options.rounds, lambda _: one_round(options.arrays), 0.3, 0))


if __name__ == "__main__":
    main()
