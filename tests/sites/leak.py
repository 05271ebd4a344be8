"""leak.py KIND: leaks one kind of block, and checks the line that the library names for the largest site."""

import json
import sys
import threading

from flarena import _sites

KEPT = []
MEGABYTE = 1 << 20


def leak_numpy():
    import numpy

    KEPT.append(numpy.ones(MEGABYTE))  # leak: numpy


def leak_torch_loss():
    """Each loss keeps its graph with the tensors for the backward pass."""
    import torch

    weight, batch = torch.ones(1024, 1024, requires_grad=True), torch.ones(1024, 1024)
    losses = []
    for _ in range(3):
        hidden = weight * batch  # leak: torch_loss
        loss = hidden.square().sum()
        losses.append(loss)
    KEPT.append(losses)


def leak_torch_activations():
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU())
    model[1].register_forward_hook(lambda module, inputs, output: KEPT.append(output))
    batch = torch.ones(1024, 64)
    with torch.no_grad():
        for _ in range(3):
            model(batch)  # leak: torch_activations


def leak_torch_optimizer():
    """A new optimizer for each round of training; all are kept."""
    import torch

    weight = torch.ones(1024, 1024, requires_grad=True)
    for _ in range(3):
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        optimizer.zero_grad()
        (weight * weight).sum().backward()
        optimizer.step()  # leak: torch_optimizer
        KEPT.append(optimizer)


def leak_bytes():
    chunks = [b"x" * 4096] * 1024
    KEPT.append(b"".join(chunks))  # leak: bytes


def leak_thread():
    def body():
        KEPT.append(bytearray(4 * MEGABYTE))  # leak: thread

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def leak_generator():
    def chunks():
        while True:
            yield bytes(4 * MEGABYTE)  # leak: generator

    source = chunks()
    KEPT.extend(next(source) for _ in range(3))


def leak_late():
    """A code object at the address of a freed one: the line must be that of the new one."""
    for number in range(50):
        scope = {}
        exec("\n" * number + "def f(): return bytes(1 << 20)", scope)
        scope["f"]()
    exec("\n" * 98 + "def f(): return bytes(6 << 20)", scope)
    KEPT.append(scope["f"]())


def named_line():
    """The line of the first frame of the largest site in this file or in executed text."""
    who = json.loads(_sites.request("who"))
    if not who["sites"]:
        return f"no site: {who}"
    largest = who["sites"][0]["site"]
    frames = next(stack["frames"] for stack in who["stacks"] if stack["site"] == largest)
    return next(f"{frame[1]}" for frame in frames if frame[0] in (__file__, "<string>"))


def expected_line(kind):
    if kind == "late":
        return "99"
    with open(__file__, encoding="utf-8") as source:
        return next(str(n) for n, line in enumerate(source, 1) if line.endswith(f"# leak: {kind}\n"))


if __name__ == "__main__":
    kind = sys.argv[1]
    try:
        globals()["leak_" + kind]()
    except ImportError as error:
        print(error)
        sys.exit(77)
    named, expected = named_line(), expected_line(kind)
    print("named" if named == expected else f"named {named}, expected {expected}")
    sys.exit(named != expected)
