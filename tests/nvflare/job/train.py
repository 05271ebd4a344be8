"""The smallest honest trainer: receives the model, adds one to each array, sends it back."""

import nvflare.client as flare


def main():
    flare.init()
    while flare.is_running():
        model = flare.receive()
        if model is None:
            break
        if flare.receive() is not model:  # asking again hands out the same model: still one receipt
            raise SystemExit("receive() does not repeat the model of the task")
        params = {name: array + 1 for name, array in model.params.items()}
        flare.send(flare.FLModel(params=params, metrics={"accuracy": 0.5}))


main()
