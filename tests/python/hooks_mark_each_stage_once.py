"""The hooked functions keep their results and their signatures, and each call writes its markers once.

Every stage of the hooks must come up here. The folder fake/ has stand-ins of the frameworks.
"""

import inspect
import os
import re
import sys
from typing import ClassVar

import flwr.client.client_app
import markers
import nvflare.client
from contexts import ClientContext, ServerContext
from flwr.clientapp.client_app import ClientApp
from flwr.server.server import Server
from flwr.serverapp.strategy.strategy import Strategy
from nvflare.apis.utils import event
from nvflare.app_opt.xgboost.histogram_based_v2.runners.xgb_client_runner import XGBClientRunner
from nvflare.client.api import receive, send
from nvflare.collab.api.app import App
from nvflare.collab.api.group import Group
from nvflare.collab.api.proxy import Proxy
from nvflare.fuel.utils.memory_utils import cleanup_memory
from openfl.callbacks.callback_list import CallbackList


class PeerContext(ServerContext):
    reports: ClassVar = {"ccwf": {"cwf.last_round": 2, "cwf.action": "learn"}}

    def get_identity_name(self):
        return "site-1"

    def get_prop(self, name, default=None):
        return self.reports if name == "cwf.status_reports" else default


class WorkflowContext(ServerContext):
    cookies: ClassVar = {}

    def get_peer_context(self):
        return PeerContext()

    def get_prop(self, name, default=None):
        values = {"__task_name__": "validate", "__workflow__": "ccwf", "current_round": 99}
        values["__task_result__"] = {"__headers__": {"__cookie_jar__": self.cookies}}
        return values.get(name, default)


assert nvflare.client.receive is receive  # names imported elsewhere refer to the hooked function
assert receive.__doc__ == "Receives." and list(inspect.signature(receive).parameters) == ["timeout", "ctx"]
assert type(nvflare.client.api.__loader__).__name__ == type(nvflare.client.api.__spec__.loader).__name__
assert type(nvflare.client.api.__loader__).__name__ == "SourceFileLoader"

model = receive(timeout=1)
assert receive() is model  # the same model again: no second marker
send(model, False)
send(model, clear_cache=False)

fired = []
for name in ("_start_run", "_round_started", "_before_aggregation", "_before_save_model", "_unknown"):
    event.fire_event_to_components(name, [fired.append], ServerContext())
for name in ("_before_aggregation", "_after_aggregation", "_before_save_model"):
    event.fire_event_to_components(event=name, components=[fired.append], ctx=ServerContext())
client = ClientContext()
client.task_data = {"__headers__": {"current_round": 7}}
event.fire_event_to_components("_before_task_execution", [fired.append], client)
event.fire_event_to_components("_before_train", [fired.append], client)
event.fire_event_to_components("_after_train", [fired.append], client)
client.task_data = None
event.fire_event_to_components("_after_task_execution", [fired.append], client)
event.fire_event_to_components("_after_send_task_result", [fired.append], client)
event.fire_event_to_components("_end_run", [fired.append], client)

workflow = WorkflowContext()
event.fire_event_to_components("_after_process_submission", [fired.append], workflow)  # after an announced round
event.fire_event_to_components("_start_workflow", [fired.append], workflow)
for _ in range(2):  # rounds without a number are counted, and a report is marked once
    event.fire_event_to_components("_after_process_submission", [fired.append], workflow)
    event.fire_event_to_components("_before_process_task_request", [fired.append], workflow)
workflow.cookies = {"contribution_round": 8}
event.fire_event_to_components("_after_process_submission", [fired.append], workflow)
assert len(fired) == 21, len(fired)  # the original function ran once for each event
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

assert XGBClientRunner()._xgb_train(2) == (("params", 2), "other")
callbacks = CallbackList(origin="aggregator")
assert callbacks.on_round_begin(3) == "begun" and callbacks.on_round_end(round_num=3) is None
callbacks = CallbackList(origin="one")
callbacks.on_round_begin(4)
callbacks.on_task_begin("train", 4)
callbacks.on_task_end("train", round_num=4)
callbacks.on_round_end(4)


class Sum(Strategy):
    def aggregate_train(self, server_round, replies):
        return super().aggregate_train(server_round, replies) + 1

    def start(self, arrays, num_rounds):
        return super().start(arrays, num_rounds)


strategy = Sum()
assert strategy.start(5, num_rounds=1) == 6 and vars(strategy) == {}
assert Server().fit_round(server_round=5, timeout=None) == ([3], []) and Server().fit_round(6, None) is None


class Target:
    def train(self, weights, current_round=None):
        return weights


train = App().find_collab_method(Target(), "train")
assert train(3) == 3 and train(weights=4, current_round=9) == 4
assert list(inspect.signature(train).parameters) == ["weights", "current_round"]
assert App().find_collab_method(Target(), "missing") is None
assert Group(App()).train(1, round=6) == ("train", (1,), {"round": 6})
assert Proxy(App()).call_func(None, "evaluate", (), {}) == ("evaluate", (), {})

written = markers.own(os.environ["FLARENA_MARKER_FILE"])
# Nothing in the environment of a trainer that attaches itself to a job tells what it is, but it receives models.
assert {(m["proc"], m["role"]) for m in written if m["stage"] == "receive"} == {("TR", "client")}
assert {m["job"] for m in written} == {"1b4e28ba"}
seen = [(m["stage"], m["site"], m["round"]) for m in written]
assert seen == [
    ("receive", "site-1", 7),
    ("cache_kept", "site-1", 7),
    ("before_send", "site-1", 7),
    ("send", "site-1", 7),
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
    ("result_processed", "server", 0),
    ("round_started", "server", 2),
    ("result_processed", "server", 1),
    ("result_processed", "server", 8),
    ("before_trim", "server", 8),
    ("after_trim", "server", 8),
    ("before_train", "client-3", 2),
    ("after_train", "client-3", 2),
    ("before_evaluate", "client-3", 2),
    ("after_evaluate", "client-3", 2),
    ("before_train", "node-1234", None),
    ("after_train", "node-1234", None),
    ("before_train", "client-3", 4),
    ("boosted", "site-3", 0),
    ("boosted", "site-3", 1),
    ("round_started", "aggregator", 3),
    ("after_aggregation", "aggregator", 3),
    ("before_task", "one", 4),
    ("after_task", "one", 4),
    ("after_send_result", "one", 4),
    ("round_started", "server", 1),
    ("before_aggregation", "server", 1),
    ("after_aggregation", "server", 1),
    ("round_started", "server", 5),
    ("before_aggregation", "server", 5),
    ("after_aggregation", "server", 5),
    ("round_started", "server", 6),
    ("before_call", "site-2", 0),
    ("after_call", "site-2", 0),
    ("before_call", "site-2", 9),
    ("after_call", "site-2", 9),
    ("call_returned", "site-2", 6),
    ("call_returned", "site-2", 0),
], seen

with open(sys.argv[1], encoding="utf-8") as page:  # docs/markers.md lists exactly these stages
    listed = re.findall(r"^\| `(\w+)` \| (?:library, )?hooks \|", page.read(), re.MULTILINE)
assert listed, "no stage found in the page"
differing = set(listed) ^ {stage for stage, _, _ in seen}
assert not differing, f"listed but not marked here, or marked but not listed: {differing}"
