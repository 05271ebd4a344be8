"""Searches for holders among objects whose methods block, raise or have effects. The search must run none of them."""

import ctypes
import importlib.util
import sys
import tempfile
import threading

import flarena
from flarena import _sites

SIZE = 8 << 20
called = []


def search():
    """The holders of all sites."""
    import json

    return [line for one in json.loads(_sites.request("who"))["sites"] for line in flarena.holders(one["site"], 60)]


def lazy_module():
    folder = tempfile.mkdtemp()
    with open(f"{folder}/lazy_case.py", "w") as file:
        file.write("import builtins; builtins.lazy_case_ran = True")
    sys.path.insert(0, folder)
    spec = importlib.util.find_spec("lazy_case")
    loader = spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["lazy_case"] = module
    loader.exec_module(module)
    held = bytearray(SIZE)
    lines = search()
    assert held and not hasattr(__import__("builtins"), "lazy_case_ran"), "the module was loaded"
    return lines


class Proxy:
    __slots__ = ("content",)

    def __init__(self, content):
        object.__setattr__(self, "content", content)

    @property
    def __class__(self):
        raise RuntimeError("outside of the context")

    @property
    def __dict__(self):
        raise RuntimeError("outside of the context")


def proxy():
    global kept
    kept = Proxy([bytearray(SIZE)])
    return search()


def traced():
    """A tracer or profiler in Python calls the search for each line of `work`."""
    is_busy = False

    def tracer(frame, event, _argument):
        nonlocal is_busy
        if frame.f_code.co_name == "work" and not is_busy:
            is_busy = True
            search()
            is_busy = False
        return tracer

    def any_arguments(*arguments):
        return tracer(*arguments)

    def work(first=1):
        second = 2
        third = first + second
        return first + second + third

    held = bytearray(SIZE)
    for start, stop in ((sys.settrace, None), (sys.setprofile, None)):
        for function in (tracer, any_arguments):
            start(function)
            result = work()
            start(stop)
            assert result == 6, result
    return search() if held else []


def bytearrays():
    """A profiler resizes bytearrays during the search, as another thread could."""
    own, failures = [bytearray(10) for _ in range(3)], []

    def resize(_frame, _event, _argument):
        for one in own:
            try:
                one.append(1)
                one.pop()
            except BufferError as error:
                failures.append(error)

    no_object = ctypes.create_string_buffer(SIZE)  # not an array, so the search looks at every bytearray
    sys.setprofile(resize)
    search()
    sys.setprofile(None)
    assert no_object and not failures, failures
    held = bytearray(SIZE)
    return search() if held else []


def lock():
    """The attributes of an object need a lock that this thread holds."""
    global kept
    mutex = threading.Lock()

    class Guarded:
        def __init__(self):
            object.__setattr__(self, "data", [bytearray(SIZE)])

        def __getattribute__(self, name):
            if not mutex.acquire(timeout=2):
                raise AssertionError("deadlock")
            mutex.release()
            called.append(name)
            return object.__getattribute__(self, name)

    kept = [Guarded()]
    with mutex:
        return search()


def hostile():
    """Every method of the objects, of their class and of their metaclass raises."""
    global kept
    kept, is_armed = [], False
    names = """__getattribute__ __len__ __iter__ __hash__ __eq__ __bool__ __repr__ __str__ __contains__ __getitem__
        __format__ __instancecheck__ __subclasscheck__ __index__ __next__ __call__ get items keys values copy""".split()

    def method(name):
        def raises(self, *arguments):
            if is_armed:
                called.append(name)
                raise RuntimeError(name)
            base = type if isinstance(self, type) else next(b for b in type(self).__mro__[1:] if hasattr(b, name))
            return getattr(base, name)(self, *arguments)

        return raises

    def raising_property(name):
        def get(self):
            called.append(name)
            raise RuntimeError(name)

        return property(get)

    Meta = type("Meta", (type,), {name: method(name) for name in names if hasattr(type, name)})
    members = {name: method(name) for name in names} | {"__class__": raising_property("__class__")}
    for own in ({}, {"__slots__": ("data",)}, {"__dict__": raising_property("__dict__")}):
        one = object.__new__(Meta("Object", (), members | own))
        object.__setattr__(one, "data", [bytearray(SIZE)])
        kept.append(one)
    contents = {dict: {"data": [bytearray(SIZE)]}, list: [[bytearray(SIZE)]], tuple: ([bytearray(SIZE)],)}
    for base, content in {**contents, bytearray: SIZE, bytes: b"x" * SIZE, str: ""}.items():
        one = base.__new__(Meta(base.__name__.title(), (base,), dict(members)), content)
        if base.__init__ is not object.__init__:
            base.__init__(one, content)
        kept.append(one)
    is_armed = True
    lines = search()
    is_armed = False
    return lines


case = sys.argv[1]
kept = None
lines = globals()[case]()
assert not called, called
assert any(line for line in lines), lines
print("no code of the program ran")
