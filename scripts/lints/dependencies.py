"""Other people's crates: their licences, versions and sources are those that deny.toml allows.

Does of `cargo deny` what needs no network and no installation. Beside it: fuzz/Cargo.toml builds the same sources,
so it must name what they name.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import tomllib

CRATES = ("src/shared", "src/shim", "src/cli")


def packages(targets):
    """Whatever is compiled on one of the targets, tests and build scripts included."""
    found = {}
    for target in targets:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
        answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        needed = {node["id"] for node in answer["resolve"]["nodes"]}
        found |= {package["id"]: package for package in answer["packages"] if package["id"] in needed}
    return list(found.values())


def allows(expression, allowed):
    """True when an SPDX expression can be met. An exception only adds to what its licence allows."""
    tokens = re.findall(r"[()]|[\w.+-]+", expression.replace("/", " OR "))

    def alternatives():
        met = together()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            met = together() or met
        return met

    def together():
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one():
        name = tokens.pop(0)
        if name == "(":
            met = alternatives()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":
            del tokens[:2]
        return name in allowed

    return alternatives()


def licences(found, rules):
    for package in found:
        licence = package["license"] or "none"
        if not allows(licence, rules["allow"]):
            yield f"{package['name']} {package['version']}: its licence is not in deny.toml: {licence}"


def sources(found, rules):
    known = {f"registry+{registry}" for registry in rules["allow-registry"]}
    for package in found:
        if package["source"] not in {None, *known}:
            yield f"{package['name']} {package['version']} comes from {package['source']}"


def duplicates(found, rules):
    skipped = [skip["crate"].split("@") for skip in rules["skip"]]
    versions = defaultdict(set)
    for package in found:
        versions[package["name"]].add(package["version"])
    for name, seen in sorted(versions.items()):
        spared = {v for v in seen for crate, start in skipped if crate == name and f"{v}.".startswith(f"{start}.")}
        if len(seen - spared) > 1:
            yield f"{name} is built in several versions: {', '.join(sorted(seen))}"
    for name, start in skipped:
        if len(versions[name]) < 2:
            yield f"deny.toml skips {name}@{start}, which is there in one version at most"


def table(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def forgotten(name="fuzz/Cargo.toml"):
    """What the fuzzed crates use and the fuzzers' manifest lacks."""
    shared = table("Cargo.toml")["workspace"]["dependencies"]
    fuzz = table(name)["dependencies"]
    for crate in CRATES:
        manifest = table(f"{crate}/Cargo.toml")
        for kind in ("dependencies", "dev-dependencies"):
            for dependency, asked in manifest.get(kind, {}).items():
                asked = whole(shared[dependency] if whole(asked).get("workspace") else asked)
                given = whole(fuzz.get(dependency, {}))
                if "path" in asked:
                    continue
                missing = set(asked.get("features", [])) - set(given.get("features", []))
                if asked.get("version") != given.get("version") or missing:
                    yield f"{name}: {dependency} is not as in {crate}/Cargo.toml"


def whole(dependency):
    return {"version": dependency} if isinstance(dependency, str) else dependency


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    rules = table("deny.toml")
    found = packages(rules["graph"]["targets"])
    lines = [
        *licences(found, rules["licenses"]),
        *sources(found, rules["sources"]),
        *duplicates(found, rules["bans"]),
        *forgotten(),
    ]
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
