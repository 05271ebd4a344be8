"""Opens a page in headless chromium: the document it builds, and pictures in light and dark."""

import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

URL = "file://" + os.path.abspath(sys.argv[1])
CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-dev-shm-usage", "--window-size=1300,1600"]


def run(folder, *options):
    command = [*CHROMIUM, f"--user-data-dir={folder}/profile", *options, URL]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


def pixels(path):
    """All bytes of the picture, and the colour of its upper left corner."""
    data = open(path, "rb").read()
    width, _, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    chunks, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        chunks += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    raw = zlib.decompress(chunks)
    size = 3 if kind == 2 else 4
    return raw, raw[1:4], width * size + 1


with tempfile.TemporaryDirectory() as folder:
    document = run(folder, "--dump-dom")
    assert len(re.findall(r"<svg[^>]*role=\"img\"", document)) == 20
    for word in ("live growth", "retention", "file-backed", "flat", "Over rounds", "What to do"):
        assert word in document, word
    looks = {}
    for scheme, options in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
        picture = f"{folder}/{scheme}.png"
        run(folder, f"--screenshot={picture}", *options)
        raw, corner, row = pixels(picture)
        rows = {raw[i:i + row] for i in range(0, len(raw), row)}
        assert len(rows) > 200, f"{scheme}: {len(rows)} different rows, the picture is blank"
        looks[scheme] = sum(corner)
    assert looks["light"] > 600 > 200 > looks["dark"], looks
