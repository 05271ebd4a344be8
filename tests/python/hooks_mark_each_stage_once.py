"""The hooked functions keep their results and their signatures, and each call writes its markers once."""

import inspect
import os
import re
import sys

import flwr.client.client_app
import markers
import nvflare.client
from flwr.clientapp.client_app import ClientApp
from nvflare.apis.utils import event
from nvflare.client.api import receive, send
from nvflare.collab.api.app import App
from nvflare.collab.api.group import Group
from nvflare.collab.api.proxy import Proxy
from nvflare.fuel.utils.memory_utils import cleanup_memory


class ServerContext:
    def get_process_type(self):
        return "SJ"

    def get_identity_name(self):
        return "the project"

    def get_prop(self, name, default=None):
        return 5 if name == "current_round" else default


class ClientContext(ServerContext):
    task_data = {"__headers__": {"current_round": 7}}

    def get_process_type(self):
        return "CJ"

    def get_identity_name(self):
        return "site-1"

    def get_prop(self, name, default=None):
        return self.task_data if name == "__task_data__" else default


assert nvflare.client.receive is receive  # names imported elsewhere refer to the hooked function
assert receive.__doc__ == "Receives." and list(inspect.signature(receive).parameters) == ["timeout", "ctx"]
assert type(nvflare.client.api.__loader__).__name__ == type(nvflare.client.api.__spec__.loader).__name__
assert type(nvflare.client.api.__loader__).__name__ == "SourceFileLoader"

model = receive(timeout=1)
assert receive() is model  # the same model again: no second marker
send(model, clear_cache=True)

fired = []
for name in ("_start_run", "_round_started", "_before_aggregation", "_before_save_model", "_unknown"):
    event.fire_event_to_components(name, [fired.append], ServerContext())
for name in ("_before_aggregation", "_after_aggregation", "_before_save_model"):
    event.fire_event_to_components(event=name, components=[fired.append], ctx=ServerContext())
client = ClientContext()
event.fire_event_to_components("_before_task_execution", [fired.append], client)
event.fire_event_to_components("_before_train", [fired.append], client)
event.fire_event_to_components("_after_train", [fired.append], client)
client.task_data = None
event.fire_event_to_components("_after_task_execution", [fired.append], client)
event.fire_event_to_components("_after_send_task_result", [fired.append], client)
event.fire_event_to_components("_end_run", [fired.append], client)
assert len(fired) == 14
assert cleanup_memory(True) == ("cleaned", True)

assert flwr.client.client_app.ClientApp is ClientApp  # an old name of the same class, hooked once
app = ClientApp()
assert list(inspect.signature(app).parameters) == ["message", "context"]
part, node = ClientApp.Context(1234, {"partition-id": 3}), ClientApp.Context(1234, {})
for kind, group, config, context in (
    ("train", "2", {}, part),
    ("evaluate.on_all", "", {"server-round": 2}, part),
    ("train", "", None, node),
    ("query", "2", {}, part),
):
    message = ClientApp.Message(kind, group, config)
    assert app(message, context) == ("reply", message)
try:
    app(ClientApp.Message("train.fails", "4", {}), part)
except ValueError:
    pass


class Target:
    def train(self, weights, current_round=None):
        return weights


train = App().find_collab_method(Target(), "train")
assert train(3) == 3 and train(weights=4, current_round=9) == 4
assert list(inspect.signature(train).parameters) == ["weights", "current_round"]
assert App().find_collab_method(Target(), "missing") is None
assert Group(App()).train(1, round=6) == ("train", (1,), {"round": 6})
assert Proxy(App()).call_func(None, "evaluate", (), {}) == ("evaluate", (), {})

seen = [(m["stage"], m["site"], m["round"]) for m in markers.own(os.environ["FLARENA_MARKER_FILE"])]
assert seen == [
    ("receive", "site-1", 7),
    ("before_send", "site-1", 7),
    ("send", "site-1", 7),
    ("start_run", "server", None),
    ("round_started", "server", 5),
    ("before_aggregation", "server", 5),
    ("after_aggregation", "server", 5),
    ("before_aggregation", "server", 5),
    ("after_aggregation", "server", 5),
    ("before_task", "site-1", 7),
    ("before_train", "site-1", 7),
    ("after_train", "site-1", 7),
    ("after_task", "site-1", 7),
    ("after_send_result", "site-1", 7),
    ("end_run", "site-1", None),
    ("before_trim", "site-1", None),
    ("after_trim", "site-1", None),
    ("before_train", "client-3", 2),
    ("after_train", "client-3", 2),
    ("before_evaluate", "client-3", 2),
    ("after_evaluate", "client-3", 2),
    ("before_train", "node-1234", None),
    ("after_train", "node-1234", None),
    ("before_train", "client-3", 4),
    ("before_call", "site-2", 0),
    ("after_call", "site-2", 0),
    ("before_call", "site-2", 9),
    ("after_call", "site-2", 9),
    ("call_returned", "site-2", 6),
    ("call_returned", "site-2", 0),
], seen

with open(sys.argv[1], encoding="utf-8") as page:  # docs/markers.md lists exactly these stages
    listed = re.findall(r"^\| `(\w+)` \| (?:library, )?hooks \|", page.read(), re.MULTILINE)
assert len(listed) >= 17 and set(listed) == {stage for stage, _, _ in seen}, listed
