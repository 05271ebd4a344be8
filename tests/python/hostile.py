"""Calls of the package and of the library into a program whose objects and handlers are hostile.

hostile.py CASE     prints "as without flarena"; run.sh lists the cases
"""

import _signal
import asyncio
import gc
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import types

import flarena
import subinterpreters
from flarena import _marking, _native, _nvflare, _safety, _sigterm, _sites


class TimeLimit(Exception):
    """Raised by a signal handler, as programs do that limit the time of a call."""


def raise_time_limit(*_):
    raise TimeLimit


class Meta(type):
    @property
    def __name__(cls):
        raise RuntimeError("the name of a class")


class Hostile(str):
    """A text whose every method raises, blocks for ever, or calls itself."""

    def __hash__(self):
        raise RuntimeError("hash")

    def __eq__(self, other):
        threading.Lock().acquire(), threading.Event().wait()

    def __len__(self):
        return len(self)

    __bool__ = __str__ = __repr__ = __format__ = __iter__ = __hash__

    @property
    def __class__(self):
        raise RuntimeError("class")


def hook(error):
    """The exception that leaves a hook in which `error` is raised, or None."""

    @_marking.guarded
    def hooked():
        raise error

    try:
        hooked()
    except BaseException as left:
        return left
    return None


def hooks():
    assert hook(RuntimeError()) is None
    assert hook(Meta("Error", (Exception,), {})()) is None, "the name of an error's class"
    for kind in (KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit):
        assert isinstance(hook(kind()), kind)
    assert _marking.text_or_none(Hostile("site-1")) == "site-1" and _marking.text_or_none(5) is None

    class Number:
        def __int__(self):
            raise ZeroDivisionError

    assert _marking.number_or_none(Number()) is None

    fired = []
    module = types.SimpleNamespace(fire_event_to_components=lambda *arguments: fired.append(arguments))
    _nvflare.hook_events(module)
    event = Hostile("_start_run")
    module.fire_event_to_components(event, [], None)
    assert fired[0][0] is event, "the program's own event is passed on"


def handler_in_hook():
    """The exception of a signal handler that interrupts a hook reaches the program."""
    signal.signal(signal.SIGUSR1, raise_time_limit)

    @_marking.guarded
    def hooked():
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.01)

    try:
        hooked()
    except TimeLimit:
        return
    raise AssertionError("the exception is lost")


def handler_of_sigterm():
    armed = _sigterm.MarkOnSigterm(lambda: None)
    armed.arm()

    class Handler:
        def __eq__(self, other):
            raise RuntimeError("compared")

        def __call__(self, *_):
            pass

    own = Handler()
    _signal.signal(signal.SIGTERM, own)
    armed.disarm()
    assert _signal.getsignal(signal.SIGTERM) is own


def lazy_pools():
    """A library that waits in LazyLoader is not loaded, and an object that is no module has no pool."""

    class Loader:
        def create_module(self, spec):
            return None

        def exec_module(self, module):
            raise AssertionError("loaded")

    for name in ("pyarrow", "torch.cuda"):
        loader = importlib.util.LazyLoader(Loader())
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        sys.modules[name] = module
        loader.exec_module(module)
    _native.release_pools()
    assert _native.held_by_pools() == _native.held_on_gpus() == (None, None)
    sys.modules["pyarrow"] = Hostile("no module")
    assert _native.held_by_pools() == (None, None)


def threading_replaced():
    sys.modules["threading"] = Hostile("no module")
    assert not _safety.may_collect()
    assert flarena.mark("here") in (True, False)


def collections_walked():
    """The program changes the lists and dicts that a search walks, in the middle of it."""
    stop = threading.Event()
    kept = [bytearray(8 << 20)]

    class Changing:
        pass

    objects = [Changing() for _ in range(50)]

    def change():
        while not stop.is_set():
            for number, one in enumerate(objects):
                one.__dict__[f"n{number}"] = kept
                one.__dict__.pop(f"n{number}")
                sys.modules[f"hostile_{number}"] = types.ModuleType("hostile")
                sys.modules.pop(f"hostile_{number}")

    thread = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread.start()
    for _ in range(3):
        flarena.holders(seconds=0.2)
    stop.set()
    thread.join()
    sys.setswitchinterval(interval)
    assert gc.isenabled() and len(kept[0]) == 8 << 20


def coroutines():
    async def work(number):
        held = bytearray(2 << 20)
        await asyncio.sleep(0)
        flarena.holders(seconds=0.05)
        flarena.mark("task", f"site-{number}", number)
        await asyncio.sleep(0)
        return len(held) + number

    async def main():
        cancelled = asyncio.ensure_future(asyncio.sleep(60))
        results = await asyncio.gather(*(work(number) for number in range(4)))
        cancelled.cancel()
        return results

    assert asyncio.run(main()) == [(2 << 20) + number for number in range(4)]


def subinterpreter():
    """A subinterpreter that starts and ends leaves the sites of the main one on, and a search beside it works."""
    code = "import flarena; from flarena._activate import activate; activate(); flarena.holders(seconds=0.05)"
    one = subinterpreters.create()
    before = _sites.request("who").partition('"python":')[2][:4]
    subinterpreters.run_string(one, code)
    flarena.holders(seconds=0.1)
    subinterpreters.destroy(one)
    assert before == _sites.request("who").partition('"python":')[2][:4]
    held = [bytearray(8 << 20)]
    assert before != "true" or flarena.holders(seconds=60), held


def interrupted():
    """A signal that arrives in a pending call of the library raises its exception in the program."""
    signal.signal(signal.SIGUSR1, raise_time_limit)

    class Pool:
        backend_name = "mimalloc"

        def release_unused(self):
            signal.raise_signal(signal.SIGUSR1)

    # Before 3.13 a busy main thread runs a pending call of a thread without Python only if another thread waits
    # for Python's lock.
    threading.Thread(target=lambda: [time.sleep(0.01) for _ in range(3000)], daemon=True).start()
    called = []
    sys.modules["pyarrow"] = types.ModuleType("pyarrow")
    sys.modules["pyarrow"].default_memory_pool = Pool

    def tracer(frame, _event, _argument):
        called.append(frame.f_code.co_filename)
        return None

    def work():  # outside the try block: once on Python 3.13.0 the loop's exception missed the handler of its own frame
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline:
            sum(range(1000))

    client = None
    sys.settrace(tracer)
    try:  # on a slow machine the governor comes first
        client = subprocess.Popen([os.environ["FLARENA_COMMAND"], "trim", str(os.getpid())], stdout=subprocess.DEVNULL)
        work()
    except TimeLimit:
        sys.settrace(None)
        if client:
            client.wait(100)
        if sys.version_info >= (3, 11):
            assert "<string>" not in called, "a tracer sees the library's statements"
        return
    raise AssertionError("the exception is lost")


kept_alive = [bytearray(40 << 20) for _ in range(4)]  # a governor starts
globals()[sys.argv[1]]()
print("as without flarena")
