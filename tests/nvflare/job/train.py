"""A minimal trainer: it receives the model, adds one to each array, and sends it back."""

import nvflare.client as flare


def main():
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        if flare.receive() is not model:  # a second call returns the same model, and is no second marker
            raise SystemExit("receive() does not repeat the model of the task")
        params = {name: array + 1 for name, array in model.params.items()}
        flare.send(flare.FLModel(params=params, metrics={"accuracy": 0.5}))


main()
