"""A minimal trainer: it receives the model, adds one to each array, and sends it back.

train.py MB   site-2 keeps MB megabytes more in each round
"""

import sys

import nvflare.client as flare


def main(leak):
    flare.init()
    kept = []
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        if flare.receive() is not model:  # a second call returns the same model, and is no second marker
            raise SystemExit("receive() does not repeat the model of the task")
        if flare.get_site_name() == "site-2":
            kept.append(b"x" * (int(leak) << 20))
        params = {name: array + 1 for name, array in model.params.items()}
        flare.send(flare.FLModel(params=params, metrics={"accuracy": 0.5}))


main(*sys.argv[1:])
