"""Federated-learning rounds of a NumPy trainer that uses memory as NVFlare's client does.

    fl_rounds.py --wire FILE --rounds N --idle S --final-idle S
    fl_rounds.py --wire FILE --make 64x8MB | mix:512MB        (writes the model)

A round: receive in 1 MB chunks over 16 threads, join, deserialize, make many small objects with mixed lifetimes,
train with temporaries, serialize into a growing BytesIO, send in chunks, drop everything, idle. The model is read from
a file, so that this process has no copy of the sender. All contenders must end with the same checksum.
"""

import argparse
import io
import os
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy
import rounds

CHUNK = 1 << 20
MB = 1 << 20


def array_bytes(model):
    """Sizes of a model's arrays: `COUNTxSIZEMB`, or `mix:TOTALMB` with arrays of 4 KB to 200 MB."""
    if not model.startswith("mix:"):
        count, size = model.removesuffix("MB").split("x")
        return [int(size) * MB] * int(count)
    total, chance, sizes = int(model[4:].removesuffix("MB")) * MB, random.Random(7), [200 * MB]
    while sum(sizes) < total:
        sizes.append(min(int(4096 * 51200 ** chance.random()) // 8 * 8, max(total - sum(sizes), 4096)))
    return sizes


def make_wire(path, model):
    """Writes the serialized model array by array, because it may not fit into memory twice."""
    generator = numpy.random.default_rng(1)
    with open(path + ".part", "wb") as wire:
        for size in array_bytes(model):
            write_array(wire, generator.random(size // 4, dtype=numpy.float32))
    os.replace(path + ".part", path)


def write_array(stream, array):
    data = memoryview(array).cast("B")
    stream.write(struct.pack("<Q", len(data)))
    stream.write(data)


def receive(pool, path):
    """Joins chunks that other threads allocated."""
    with open(path, "rb") as wire:
        size = os.fstat(wire.fileno()).st_size
        chunks = list(pool.map(lambda at: os.pread(wire.fileno(), CHUNK, at), range(0, size, CHUNK)))
    return b"".join(chunks)


def deserialize(payload):
    arrays, at = [], 0
    while at < len(payload):
        (size,) = struct.unpack_from("<Q", payload, at)
        arrays.append(numpy.frombuffer(payload, numpy.float32, size // 4, at + 8).copy())
        at += 8 + size
    return arrays


def small_objects(chance, kept):
    """Records of 16 to 4096 bytes. Nine of ten are freed with the round, the others live for three rounds."""
    records = [{"id": i, "blob": bytes(chance.randrange(16, 4096)), "tags": [str(i)] * 3} for i in range(20_000)]
    kept.append(records[::10])
    del kept[:-3]
    return len(records)


def train(arrays, steps=2):
    """Gradient steps with temporary arrays."""
    for index, weights in enumerate(arrays):
        for _ in range(steps):
            gradient = weights * numpy.float32(0.01) + numpy.float32(0.001)
            weights = weights - gradient * numpy.float32(0.1)
        arrays[index] = weights


def serialize(arrays):
    buffer = io.BytesIO()
    while arrays:
        write_array(buffer, arrays.pop(0))
    return buffer


def send(pool, buffer):
    """Copies of 1 MB each, whose checksums threads compute in place of the network."""
    view = buffer.getbuffer()
    sums = pool.map(lambda at: zlib.adler32(bytes(view[at : at + CHUNK])), range(0, len(view), CHUNK))
    return zlib.crc32(b"".join(struct.pack("<I", s) for s in sums))


class Trainer:
    """One client. Its thread pool and some records outlive a round."""

    def __init__(self, path):
        self.path, self.pool, self.chance, self.kept = path, ThreadPoolExecutor(16), random.Random(3), []
        self.checksum = 0

    def round(self, _number):
        arrays = deserialize(receive(self.pool, self.path))
        small_objects(self.chance, self.kept)
        train(arrays)
        self.checksum = send(self.pool, serialize(arrays))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--wire", required=True)
    parser.add_argument("--make")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle", type=float, default=1.0)
    parser.add_argument("--final-idle", type=float, default=6.0)
    options = parser.parse_args()
    if options.make:
        return make_wire(options.wire, options.make)
    trainer = Trainer(options.wire)
    numbers = rounds.run(options.rounds, trainer.round, options.idle, options.final_idle)
    rounds.report(**numbers, checksum=trainer.checksum)


if __name__ == "__main__":
    main()
