import os
import time


class Model:
    current_round = 7


class Api:
    closed = False
    model = None

    def receive(self, timeout):
        if os.environ.get("FAKE_RECEIVE") == "raises":
            raise RuntimeError("the receive of the fake failed")
        if self.model is None:
            self.model = Model()
            if os.environ.get("FAKE_RECEIVE") == "odd":
                self.model = object()  # no current_round, no weak references
        return self.model

    def send(self, model, clear_cache):
        if os.environ.get("FAKE_SEND") == "hangs":
            print("sending", flush=True)
            time.sleep(60)
        if clear_cache:
            self.model = None

    def get_site_name(self):
        return "site-1"

    def get_job_id(self):
        return os.environ.get("FAKE_JOB", "1b4e28ba-2fa1-41d2-883f-0016d3cca427")


class Context:
    api = Api()


default_context = Context()


def get_context(ctx=None):
    return ctx or default_context


def receive(timeout=None, ctx=None):
    """Receives."""
    return get_context(ctx).api.receive(timeout)


def send(model, clear_cache=True, ctx=None):
    return get_context(ctx).api.send(model, clear_cache)
