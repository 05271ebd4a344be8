"""Adds the prebuilt library and command to the wheel, and sets its platform tag."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# manylinux2014 means glibc 2.17, for which scripts/build-release.sh builds.
PLATFORM = "manylinux2014"


class ReleaseBinaries(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        architecture = os.environ.get("FLARENA_WHEEL_ARCHITECTURE") or os.uname().machine
        root = Path(self.root)
        release = root / "build" / "release" / architecture
        for name in ("libflarena.so", "flarena", "THIRD-PARTY-LICENSES"):
            if not (release / name).is_file():
                raise FileNotFoundError(f"{release / name} is missing: run scripts/build-release.sh first")
        startup = root / "scripts" / "package"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORM}_{architecture}"
        build_data["force_include"] = {
            str(release / "libflarena.so"): "flarena/libflarena.so",
            str(release / "THIRD-PARTY-LICENSES"): "flarena/THIRD-PARTY-LICENSES",
            str(startup / "flarena-hooks.pth"): "flarena-hooks.pth",
            str(startup / "flarena-hooks.start"): "flarena-hooks.start",
        }
        build_data["shared_scripts"] = {
            str(release / "flarena"): "flarena",
            str(root / "sub_start.sh"): "sub_start.sh",
        }
