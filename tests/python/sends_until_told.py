"""Receives, then sends; with FAKE_SEND=hangs it waits in send() until it is terminated."""

import nvflare.client as flare

flare.send(flare.receive())
print("sent")
