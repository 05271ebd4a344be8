"""NVFlare's own dispatch of the Collab API calls a method that keeps 12 MB per call, without a job around it."""

import logging

from nvflare.collab import collab
from nvflare.collab.api.app import ClientApp
from nvflare.collab.runtime.defs import CallHeaderKey, CallReplyKey, ObjectCallKey
from nvflare.collab.runtime.dispatch import _call_app_method
from nvflare.fuel.f3.cellnet.utils import new_cell_message

CALLS = 20


class Client:
    def __init__(self):
        self.kept = []

    @collab.publish
    def train(self, weights):
        self.kept.append(bytearray(12 << 20))
        return weights + 1


app = ClientApp(Client())
app.name = "site-1"
for call in range(CALLS):
    headers = {
        CallHeaderKey.AUTHENTICATED_CALLER: "server",
        CallHeaderKey.METHOD_NAME: "train",
        CallHeaderKey.TARGET_NAME: "site-1.client",
    }
    request = new_cell_message(headers, {ObjectCallKey.KWARGS: {"weights": call}})
    reply = _call_app_method(request, app, logging.getLogger("test"))
    assert reply.payload == {CallReplyKey.RESULT: call + 1}, reply.payload
