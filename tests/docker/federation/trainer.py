"""trainer.py SITES...: the external trainer of each site. A step is slow enough to be interrupted."""

import socket
import sys
import time

import nvflare.client as flare

STEP_SECONDS = 1.0
MEETING_PORT = 7000
MEETING_SECONDS = 120


def meet(sites):
    """Wait until the trainer of each site listens: on a busy machine one may start much later than the others."""
    deadline = time.monotonic() + MEETING_SECONDS
    for site in sites:
        while time.monotonic() < deadline:
            try:
                socket.create_connection((site, MEETING_PORT), timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)


flare.init()
listener = socket.create_server(("", MEETING_PORT))
meet(site for site in sys.argv[1:] if site != flare.get_site_name())
while flare.is_running():
    model = flare.receive()
    if model is None:
        break
    model.params = {name: array + 1 for name, array in model.params.items()}
    time.sleep(STEP_SECONDS)
    flare.send(model)
