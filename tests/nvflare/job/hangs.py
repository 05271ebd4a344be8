"""A job that never ends, for the test of the report on a hang."""

import time


def sleeps_for_ever():
    while True:
        time.sleep(3600)


print("the job has started", flush=True)
sleeps_for_ever()
