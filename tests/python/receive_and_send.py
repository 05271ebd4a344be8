"""Receives a model and sends it. With FAKE_SEND=hangs send() blocks until the program is terminated."""

import nvflare.client as flare

flare.send(flare.receive())
print("sent")
