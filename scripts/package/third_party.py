#!/usr/bin/env python3
"""Prints the licences of all code in the shipped files, each text once.

The licences require it: a binary must include the copyright notices of its code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Package = dict[str, Any]

HEAD = """flarena is licensed under the Apache License 2.0. Its library and command contain the work of
others, under the licences below, and parts of the Rust standard library (MIT OR Apache-2.0).
"""


def metadata(platform: str) -> dict[str, Any]:
    command = ["cargo", "metadata", "--quiet", "--locked", "--format-version", "1", "--filter-platform", platform]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return answer


def linked(answer: dict[str, Any]) -> Iterator[Package]:
    """The packages compiled into a binary: no build scripts, tests or procedural macros, and not flarena itself."""
    packages = {package["id"]: package for package in answer["packages"]}
    needs = {node["id"]: node["deps"] for node in answer["resolve"]["nodes"]}
    todo, seen = list(answer["workspace_members"]), set()
    while todo:
        name = todo.pop()
        if name in seen or is_macro(packages[name]):
            continue
        seen.add(name)
        todo += [dep["pkg"] for dep in needs[name] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
    return (packages[name] for name in seen if name not in answer["workspace_members"])


def is_macro(package: Package) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def texts(package: Package) -> Iterator[str]:
    """Of a package with a choice between Apache and another licence, the other text has the copyright notice."""
    folder = Path(package["manifest_path"]).parent
    names = sorted(name for name in os.listdir(folder) if name.upper().startswith(("LICEN", "COPYING", "COPYRIGHT")))
    for name in [name for name in names if "APACHE" not in name.upper()] or names:
        yield (folder / name).read_text("utf-8").strip()
    if package["name"] == "tikv-jemalloc-sys":
        yield (folder / "jemalloc" / "COPYING").read_text("utf-8").strip()
    if not names:
        yield f"The package has no licence file: {package['license']}, {', '.join(package['authors'])}"


def main(platform: str) -> None:
    users: dict[str, list[str]] = {}
    for package in linked(metadata(platform)):
        for text in texts(package):
            users.setdefault(text, []).append(f"{package['name']} {package['version']} ({package['license']})")
    print(HEAD)
    for names, text in sorted((sorted(names), text) for text, names in users.items()):
        print("=" * 80, *names, "", text, "", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
