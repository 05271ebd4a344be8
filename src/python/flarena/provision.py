"""A builder for NVFlare's `project.yml`: startup kits that contain flarena.

    builders:
      ...                                            # after StaticFileBuilder
      - path: flarena.provision.FlarenaBuilder
      ...                                            # before SignatureBuilder

Each kit with a `sub_start.sh` gets the library, this package and the launcher. Its `sub_start.sh` uses them if the site
sets NVFLARE_ENABLE_JEMALLOC_PRELOAD=true or FLARENA_ALLOCATOR, and otherwise starts on the system's malloc.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    class Builder: ...

else:
    from nvflare.lighter.spec import Builder

_PACKAGE = Path(__file__).resolve().parent
_MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of the ELF header
_MAX_BYTES = 4 << 20  # a stripped library has half of it, one with debug information three times as much
# The folders of the launcher: of a checkout, of the Debian package, of `pip install --target`, of a wheel.
_LAUNCHER_FOLDERS = ("../../..", "../..", "../bin", "../../../../bin")
# Those of libraries: of a wheel, of a checkout's release builds and own build, of the Debian package.
_LIBRARY_FOLDERS = (
    "",
    *(f"../../../build/release/{machine}" for machine in _MACHINES.values()),
    "../../../target/release",
    *(f"../../../../lib/{machine}-linux-gnu" for machine in _MACHINES.values()),
)

_LAUNCH = """\
# flarena: if the site asks for it, the launcher starts this script again with the library in its environment.
flarena="$( cd "$( dirname "${BASH_SOURCE[0]}" )" >/dev/null 2>&1 && pwd )"
if [[ "$FLARENA_LAUNCHED" != "$$" && "$LD_PRELOAD" != *libflarena.so* && -r "$flarena/flarena.sh" ]] &&
   [[ -n "$FLARENA_ALLOCATOR" || "${NVFLARE_ENABLE_JEMALLOC_PRELOAD,,}" =~ ^(1|true|yes|on)$ ]]; then
  exec sh "$flarena/flarena.sh" "$flarena/sub_start.sh" "$@"
fi
"""
_NVFLARE_PRELOAD = re.compile(
    r'^(?:#.*\n)*if \[ "\$\{NVFLARE_ENABLE_JEMALLOC_PRELOAD\b.*\n(?:.*\n)*?fi\n\n?', re.MULTILINE
)


class FlarenaBuilder(Builder):
    """Puts flarena into the kits of the server and the clients.

    libraries  paths of more files libflarena.so, such as one for sites of another architecture
    """

    def __init__(self, libraries: Iterable[str] = ()) -> None:
        launchers = list(_files("sub_start.sh", _LAUNCHER_FOLDERS))
        self._libraries: dict[str, Path] = {}
        for library in (*map(Path, libraries), *_files("libflarena.so", _LIBRARY_FOLDERS)):
            self._libraries.setdefault(_machine(library), library)
        if not launchers or not self._libraries:
            raise FileNotFoundError(
                f"{_PACKAGE} lacks its launcher or library: install flarena's wheel or Debian package"
            )
        self._launcher = launchers[0]

    def build(self, project: Any, ctx: Any) -> None:
        kits = [Path(ctx.get_kit_dir(participant)) for participant in project.get_all_participants()]
        kits = [kit for kit in kits if (kit / "sub_start.sh").is_file()]
        if not kits:
            raise RuntimeError("no kit has a sub_start.sh yet: move FlarenaBuilder behind StaticFileBuilder")
        for kit in kits:
            if (kit / "signature.json").exists():
                raise RuntimeError("the kits are signed already: move FlarenaBuilder before SignatureBuilder")
            self._add_to(kit)

    def _add_to(self, kit: Path) -> None:
        for machine, library in self._libraries.items():
            folder = kit / f"{machine}-linux-gnu"
            folder.mkdir()
            _copy_stripped(library, folder / "libflarena.so")
        # Python writes no compiled files into a zip file. In a folder they would lack a signature.
        with zipfile.ZipFile(kit / "flarena.zip", "w") as archive:
            for source in sorted(_PACKAGE.rglob("*.py")):
                name = Path("flarena", source.relative_to(_PACKAGE))
                archive.writestr(zipfile.ZipInfo(str(name)), source.read_bytes())
        shutil.copyfile(self._launcher, kit / "flarena.sh")
        script = kit / "sub_start.sh"
        first_line, rest = script.read_text().split("\n", 1)
        script.write_text(f"{first_line}\n{_LAUNCH}{_NVFLARE_PRELOAD.sub('', rest)}")


def _files(name: str, folders: Iterable[str]) -> Iterator[Path]:
    places = (_PACKAGE / folder / name for folder in folders)
    return (place for place in places if place.is_file())


def _copy_stripped(library: Path, copy: Path) -> None:
    """Copy a library without debug information, which is most of what cargo builds."""
    try:
        subprocess.run(["objcopy", "--strip-unneeded", library, copy], check=True, stderr=subprocess.PIPE)
    except (OSError, subprocess.CalledProcessError) as error:  # no binutils, or none for its architecture
        if library.stat().st_size > _MAX_BYTES:
            raise RuntimeError(
                f"{library} contains debug information, and objcopy cannot remove it: install binutils for its "
                "architecture, or take the library that scripts/build-release.sh builds"
            ) from error
        shutil.copyfile(library, copy)


def _machine(library: Path) -> str:
    with library.open("rb") as file:
        header = file.read(20)
    machine = _MACHINES.get(int.from_bytes(header[18:], "little"))
    if header[:4] != b"\x7fELF" or machine is None:
        raise ValueError(f"{library} is not a library for {' or '.join(_MACHINES.values())}")
    return machine
