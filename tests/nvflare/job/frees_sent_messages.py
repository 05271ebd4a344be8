"""With the hooks NVFlare's byte streamer frees a message that was sent, or could not be sent, without a collection."""

import gc
import threading
import types
import weakref

from nvflare.fuel.f3.streaming.byte_streamer import ByteStreamer
from nvflare.fuel.f3.streaming.stream_types import Stream, StreamError


class Cell:
    """A cell whose messages arrive at once, or never."""

    my_info = types.SimpleNamespace(fqcn="cell")

    def __init__(self, errors):
        self.errors = errors

    def add_error_handler(self, *_args):
        pass

    def register_request_cb(self, **_kwargs):
        pass

    def fire_and_forget(self, *_args, **_kwargs):
        return self.errors


class Message(Stream):
    def __init__(self):
        super().__init__(3000, {})
        self.content = bytes(3000)

    def read(self, chunk_size):
        chunk = self.content[self.pos : self.pos + chunk_size]
        self.pos += len(chunk)
        return chunk


def send(errors):
    """The outcome of a message, and whether it was freed."""
    message, is_freed = Message(), threading.Event()
    weakref.finalize(message, is_freed.set)
    future = ByteStreamer(Cell(errors)).send("channel", "topic", "target", {}, message)
    del message
    try:
        outcome = future.result(timeout=30)
    except StreamError:
        outcome = "failed"
    assert not future.cancel() and future.done()
    del future
    return outcome, is_freed.wait(timeout=30)


gc.disable()
assert send({}) == (3000, True), "sent"
assert send({"target": "unreachable"}) == ("failed", True), "failed"
