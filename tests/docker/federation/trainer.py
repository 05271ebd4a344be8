"""The external trainer of each site. A step is slow enough to be interrupted."""

import time

import nvflare.client as flare

STEP_SECONDS = 1.0

flare.init()
while flare.is_running():
    model = flare.receive()
    if model is None:
        break
    model.params = {name: array + 1 for name, array in model.params.items()}
    time.sleep(STEP_SECONDS)
    flare.send(model)
