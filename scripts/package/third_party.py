#!/usr/bin/env python3
"""Print the licences of everything that is compiled into the shipped files, each text once.

Their licences ask for it: a binary carries the copyright notices of the code inside.
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
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", platform]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return answer


def linked(answer: dict[str, Any]) -> Iterator[Package]:
    """The packages that end in a binary: no build scripts, no tests, no procedural macros, not our own."""
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
    """Where a package offers Apache or another licence, the other is the one with the notice."""
    folder = Path(package["manifest_path"]).parent
    names = sorted(name for name in os.listdir(folder) if name.upper().startswith(("LICEN", "COPYING", "COPYRIGHT")))
    for name in [name for name in names if "APACHE" not in name.upper()] or names:
        yield (folder / name).read_text("utf-8").strip()
    if package["name"] == "tikv-jemalloc-sys":
        yield (folder / "jemalloc" / "COPYING").read_text("utf-8").strip()
    if not names:
        yield f"No licence file came with it: {package['license']}, {', '.join(package['authors'])}"


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
