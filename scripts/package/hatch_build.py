"""Adds the library and the command to the wheel, and sets its platform tag.

scripts/build-wheel.sh names an architecture, whose files of scripts/build-release.sh work with every glibc since 2.17.
`pip install` of a checkout or of the source distribution names none: cargo builds the files for this machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# manylinux2014 means glibc 2.17, for which scripts/build-release.sh builds.
PORTABLE = "manylinux2014"
NAMES = ("libflarena.so", "flarena", "THIRD-PARTY-LICENSES")


class Binaries(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        architecture = os.environ.get("FLARENA_WHEEL_ARCHITECTURE")
        if architecture:
            folder = root / "build" / "release" / architecture
            platform = f"{PORTABLE}_{architecture}"
        else:
            folder = root / "build" / "pip"
            folder.mkdir(parents=True, exist_ok=True)
            build_with_cargo(root, folder)
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        for name in NAMES:
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder / name} is missing: run scripts/build-release.sh first")
        names = ("flarena-hooks.pth", "flarena-hooks.start")
        startup = {str(root / "scripts" / "package" / name): name for name in names}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"] = {
            str(folder / "libflarena.so"): "flarena/libflarena.so",
            str(folder / "THIRD-PARTY-LICENSES"): "flarena/THIRD-PARTY-LICENSES",
            **startup,
        }
        build_data["force_include_editable"] = startup
        command = link_to(folder / "flarena") if version == "editable" else folder / "flarena"
        build_data["shared_scripts"] = {str(command): "flarena", str(root / "sub_start.sh"): "sub_start.sh"}


def link_to(command: Path) -> Path:
    """A script that runs the command where it lies, in the checkout, beside the library and the package."""
    link = command.with_name("flarena-of-the-checkout")
    link.write_text(f'#!/bin/sh\nexec {shlex.quote(str(command))} "$@"\n')
    link.chmod(0o755)
    return link


def build_with_cargo(root: Path, folder: Path) -> None:
    """Builds for this machine, in the checkout's target/, and copies the files without debug information."""
    missing = [tool for tool in ("cargo", "cc", "make") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(
            f"flarena is built from source and needs {', '.join(missing)}: install gcc and make, and Rust from "
            "https://rustup.rs, or use a wheel of scripts/release.sh"
        )
    command = ["cargo", "build", "--release", "--locked", "-p", "flarena-shim", "-p", "flarena-cli"]
    subprocess.run(command, cwd=root, check=True)
    built = Path(os.environ.get("CARGO_TARGET_DIR") or "target")
    objcopy = shutil.which("objcopy")
    for name in NAMES[:2]:
        source = root / built / "release" / name
        if objcopy:
            subprocess.run([objcopy, "--strip-debug", source, folder / name], check=True)
        else:
            shutil.copy(source, folder / name)
    licences = subprocess.run(
        [sys.executable, "scripts/package/third_party.py", f"{os.uname().machine}-unknown-linux-gnu"],
        cwd=root,
        check=True,
        stdout=subprocess.PIPE,
    )
    (folder / NAMES[2]).write_bytes(licences.stdout)
