"""The licences, versions and sources of all dependencies are those that deny.toml allows.

This is the part of `cargo deny` that needs neither a network nor an installation. It also checks that fuzz/Cargo.toml,
which builds sources of the workspace by path, names the same dependencies as their own manifests.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import tomllib

FUZZ = "fuzz/Cargo.toml"


def packages(targets):
    """All packages that are compiled for one of the targets, for tests and build scripts too."""
    found = {}
    for target in targets:
        command = ["cargo", "metadata", "--quiet", "--locked", "--format-version", "1", "--filter-platform", target]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        needed = {node["id"] for node in answer["resolve"]["nodes"]}
        found |= {package["id"]: package for package in answer["packages"] if package["id"] in needed}
    return list(found.values())


def is_satisfied(expression, allowed):
    """Whether the allowed licences satisfy an SPDX expression. `WITH` only adds permissions, so it is skipped."""
    plain = re.sub(r" WITH [\w.-]+", "", expression.replace("/", " OR "))
    words = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    return eval(" ".join(words.get(token) or str(token in allowed) for token in re.findall(r"[()]|[\w.+-]+", plain)))


def licences(found, rules):
    for package in found:
        licence = package["license"] or "none"
        if not is_satisfied(licence, rules["allow"]):
            yield f"{package['name']} {package['version']}: deny.toml does not allow its licence: {licence}"


def sources(found, rules):
    known = {f"registry+{registry}" for registry in rules["allow-registry"]}
    for package in found:
        if package["source"] not in {None, *known}:
            yield f"{package['name']} {package['version']}: deny.toml does not allow its source: {package['source']}"


def duplicates(found, rules):
    skipped = [skip["crate"].split("@") for skip in rules["skip"]]
    versions = defaultdict(set)
    for package in found:
        versions[package["name"]].add(package["version"])
    for name, seen in sorted(versions.items()):
        starts = [f"{start}." for crate, start in skipped if crate == name]
        counted = [version for version in seen if not any(f"{version}.".startswith(start) for start in starts)]
        if len(counted) > 1:
            yield f"{name} is built in more than one version: {', '.join(sorted(seen))}"
    for name, start in skipped:
        if len(versions[name]) < 2:
            yield f"deny.toml skips {name}@{start}, but fewer than two versions are used: remove the entry"


def table(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def fuzz_differences():
    """Dependencies of a fuzzed crate that fuzz/Cargo.toml lacks, or names with another version or fewer features."""
    workspace = table("Cargo.toml")["workspace"]["dependencies"]
    fuzz = table(FUZZ)
    for target in fuzz.get("test", []):
        crate = os.path.normpath(os.path.join(os.path.dirname(FUZZ), os.path.dirname(target["path"])))
        manifest = table(f"{crate}/Cargo.toml")
        for kind in ("dependencies", "dev-dependencies"):
            for name, wanted in manifest.get(kind, {}).items():
                wanted = as_table(workspace[name] if as_table(wanted).get("workspace") else wanted)
                given = as_table(fuzz["dependencies"].get(name, {}))
                missing = set(wanted.get("features", [])) - set(given.get("features", []))
                if "path" not in wanted and (wanted.get("version") != given.get("version") or missing):
                    yield f"{FUZZ}: {name} differs from {crate}/Cargo.toml"


def as_table(dependency):
    return {"version": dependency} if isinstance(dependency, str) else dependency


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    rules = table("deny.toml")
    found = packages(rules["graph"]["targets"])
    lines = [
        *licences(found, rules["licenses"]),
        *sources(found, rules["sources"]),
        *duplicates(found, rules["bans"]),
        *fuzz_differences(),
    ]
    return "\n".join(lines) or None


if __name__ == "__main__":
    sys.exit(main())
