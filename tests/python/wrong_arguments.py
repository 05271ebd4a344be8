"""Calls mark() with wrong arguments, and prints each result. With and without the library the output is the same."""

import flarena


class Raises:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class Index:
    def __index__(self):
        return 3


def result(*arguments, **named):
    try:
        return flarena.mark(*arguments, **named)
    except BaseException as error:
        return type(error).__name__


wrong = [(3,), (None,), (b"s",), (Raises(),), ("s", 3), ("s", Raises()), ("s", "t", "3"), ("s", "t", 3.5)]
wrong += [("s", "t", float("nan")), ("s", "t", float("inf")), ("s", "t", [3]), ("s", "t", Raises())]
print({result(*arguments) for arguments in wrong})
print([result("right", "t", number) == result("right") for number in (3, 3.0, True, Index(), None)])
