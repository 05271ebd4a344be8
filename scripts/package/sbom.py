#!/usr/bin/env python3
"""Prints the software bill of materials as CycloneDX 1.5: the crates in the shipped files, and jemalloc.

The same sources give the same bytes: the time is SOURCE_DATE_EPOCH, and there is no random serial number.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from third_party import Package, linked, metadata

ROOT = Path(__file__).resolve().parents[2]
Component = dict[str, Any]


def checksums() -> dict[tuple[str, str], str]:
    """Of each crate, from Cargo.lock."""
    entry = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "([0-9a-f]+)"')
    lock = (ROOT / "Cargo.lock").read_text("utf-8")
    return {(name, version): checksum for name, version, checksum in entry.findall(lock)}


def crate(package: Package, checksum: str | None) -> Component:
    name, version = package["name"], package["version"]
    component: Component = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
        "licenses": [{"expression": package["license"].replace("/", " OR ")}],
    }
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component


def jemalloc(package: Package) -> Component:
    """The C sources in the crate. Its version is 0.X.Y+JEMALLOC-..."""
    version = package["version"].partition("+")[2].partition("-")[0]
    return {
        "type": "library",
        "name": "jemalloc",
        "version": version,
        "licenses": [{"license": {"id": "BSD-2-Clause"}}],
    }


def bill(platforms: list[str]) -> dict[str, Any]:
    packages = {package["id"]: package for one in platforms for package in linked(metadata(one))}
    ordered = sorted(packages.values(), key=lambda package: (package["name"], package["version"]))
    known = checksums()
    components = [crate(package, known.get((package["name"], package["version"]))) for package in ordered]
    components += [jemalloc(package) for package in ordered if package["name"] == "tikv-jemalloc-sys"]
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text("utf-8"), re.M)
    assert version
    url = os.environ.get("FLARENA_PROJECT_URL", "").rstrip("/")
    now = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", now),
            "component": {
                "type": "application",
                "name": "flarena",
                "version": version[1],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                **({"externalReferences": [{"type": "vcs", "url": url}]} if url else {}),
            },
        },
        "components": components,
    }


if __name__ == "__main__":
    print(json.dumps(bill(sys.argv[1:]), indent=1))
