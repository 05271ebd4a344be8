# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets release
# The wheel in a fresh virtual environment.

site_files() { # all files of the environment, except pip's caches
    find "$venv" -type f ! -path '*/pip/*' ! -path '*/__pycache__/*' | sort
}

says() { # MODE COMMAND...: COMMAND starts a Python that prints whether the library is loaded, and the allocator
    local mode=$1 asked=false
    shift
    [ "$mode" = glibc ] || asked=true
    without_preload FLARENA_LOG=off NVFLARE_ENABLE_JEMALLOC_PRELOAD=$asked "$@" "$venv/bin/python" -c '
import flarena
print(flarena.loaded(), flarena.allocator(), flarena.get_allocator_type())'
}

modules_at_start() { # the modules that an idle Python has imported
    without_preload "$venv/bin/python" -c 'import sys; print("\n".join(sorted(sys.modules)))'
}

hooks_at_start() { # [NAME=VALUE...]
    without_preload "$@" "$venv/bin/python" -c 'import sys; print([type(f).__name__ for f in sys.meta_path].count("HookFinder"))'
}

# Python 3.15 resolves each line of a .start file and calls it (PEP 829).
start_file() {
    without_preload NVFLARE_CLIENT_MEMORY_PROFILE=1 "$venv/bin/python" -S -c '
import pkgutil, sys
site = sys.argv[1]
sys.path.insert(0, site)
[line] = open(site + "/flarena-hooks.start").read().splitlines()
pkgutil.resolve_name(line)()
assert any(type(finder).__name__ == "HookFinder" for finder in sys.meta_path)' "$site"
}

agrees_with_its_tag() {
    local report
    report=$(build/venv-release/bin/auditwheel show "$wheel")
    printf '%s\n' "$report"
    tr '\n' ' ' <<<"$report" | grep -q "is consistent with the following platform tag: \"manylinux_2_17_$(uname -m)\""
}

same_wheel() {
    cp "$wheel" "$SCRATCH/first.whl"
    touch src/python/flarena/__init__.py
    scripts/build-wheel.sh
    cmp "$SCRATCH/first.whl" "$wheel"
}

builder_finds() { # PYTHON [FOLDER]: prints the launcher and the libraries that the builder for kits finds
    local nvflare
    nvflare=$(scripts/venv.sh 2.9.0 2>"$SCRATCH/venv.log") || { tail -n 1 "$SCRATCH/venv.log" && return 77; }
    without_preload PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="${2:-}${2:+:}$(echo "$nvflare"/lib/python3*/site-packages)" "$1" -c '
from flarena.provision import FlarenaBuilder
builder = FlarenaBuilder()
print(builder._launcher.resolve(), *[f"{machine}={library.resolve()}" for machine, library in builder._libraries.items()])'
}

metadata() {
    "$venv/bin/python" -c '
from importlib.metadata import metadata, version
about = metadata("flarena")
assert about["License-Expression"] == "Apache-2.0", about["License-Expression"]
assert about["License-File"] and about["Summary"] and about["Requires-Python"]
assert about.get_payload().startswith("# flarena"), "no README"
assert about["Maintainer"] == "The flarena maintainers" and not about["Maintainer-email"] and not about["Project-URL"], about.items()
import flarena
assert flarena.__version__ == version("flarena"), flarena.__version__
print(version("flarena"))'
}

# In wheel, source distribution and SBOM. Prints how often the releaser's address and maintainer are there.
wheel_origin() {
    local out=$SCRATCH/origin file
    export FLARENA_PROJECT_URL=https://forge.example/flarena/ FLARENA_MAINTAINER='A Name <a@forge.example>'
    FLARENA_WHEEL_ARCHITECTURE=$(uname -m) build/venv-release/bin/hatchling build --directory "$out" >"$SCRATCH/origin.log" 2>&1
    scripts/package/sbom.py "$(uname -m)-unknown-linux-gnu" >"$out/bill"
    python3 -m zipfile -e "$out"/*.whl "$out/unpacked"
    cp "$out"/unpacked/*/METADATA "$out/wheel"
    tar -xzOf "$out"/*.tar.gz --wildcards '*/PKG-INFO' >"$out/sdist"
    for file in wheel sdist bill; do
        echo "$file $(grep -c '^Maintainer-email: A Name <a@forge.example>$' "$out/$file") $(grep -c 'https://forge.example/flarena\b' "$out/$file")"
    done
}

test_wheel() {
    local mode before bare
    venv=$SCRATCH/venv
    wheel=$(scripts/build-wheel.sh 2>&1 | tail -n 1)
    check "the wheel is built" [ -f "$wheel" ]
    python3 -m venv "$venv" >/dev/null 2>&1 || { skip "the wheel installs" "no python3 venv here"; return; }
    before=$(site_files)
    bare=$(modules_at_start)
    check "pip installs the wheel without an index" "$venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    check "auditwheel confirms the platform tag of the wheel" agrees_with_its_tag
    check "the wheel has the same bytes when it is built again" same_wheel
    check_output "the metadata is complete, and the version is the workspace's" "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)" metadata
    check_output "wheel, source distribution and SBOM name the releaser's address and maintainer" \
        $'wheel 1 5\nsdist 1 5\nbill 0 1' wheel_origin
    check_output "the command is in the environment's bin folder" "flarena $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)" "$venv/bin/flarena" --version
    check_output "python -m flarena runs the command" "flarena $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)" "$venv/bin/python" -m flarena --version
    for mode in glibc jemalloc; do
        check_output "flarena run finds the wheel's library in $mode mode" "True $mode $mode" says "$mode" "$venv/bin/flarena" run --
        check_output "sub_start.sh finds the wheel's library in $mode mode" "True $mode $mode" says "$mode" "$venv/bin/sub_start.sh" --
    done
    check_output "the builder for NVFlare's kits finds the wheel's launcher and library" \
        "$venv/bin/sub_start.sh $(uname -m)=$site/flarena/libflarena.so" builder_finds "$venv/bin/python"
    check_output "without markers the start of Python imports no additional module" "$bare" modules_at_start
    check_output "the hooks are installed with markers" 1 hooks_at_start NVFLARE_CLIENT_MEMORY_PROFILE=1
    check_output "the hooks are installed in jemalloc mode" 1 hooks_at_start FLARENA_ALLOCATOR=jemalloc
    check_output "the hooks are not installed when markers are off" 0 hooks_at_start NVFLARE_CLIENT_MEMORY_PROFILE=0
    check "the .start file names a function that installs the hooks" start_file
    check_output "launcher and wheel together install the hooks once" 1 in_both_ways
    "$venv/bin/pip" uninstall --yes flarena >/dev/null 2>&1
    check_output "no file is left after pip uninstalls the wheel" "$before" site_files
    check_output "no folder is left after pip uninstalls the wheel" "" find "$venv" -iname '*flarena*'
}

in_both_ways() {
    without_preload NVFLARE_CLIENT_MEMORY_PROFILE=1 "$venv/bin/flarena" run -- "$venv/bin/python" -c \
        'import sys; print([type(f).__name__ for f in sys.meta_path].count("HookFinder"))' 2>/dev/null
}

# pip builds with cargo. The copy saves compiling again. In target/ itself the build would replace the
# library and the command under the suites that run at the same time.
from_source() { # SOURCE: installs it, and runs with the library
    local fresh=$SCRATCH/from-source
    rm -rf "$fresh"
    python3 -m venv "$fresh"
    mkdir -p "$ROOT/target/pip" && cp -au "$ROOT/target/release" "$ROOT/target/pip/"
    CARGO_TARGET_DIR=$ROOT/target/pip "$fresh/bin/pip" install --quiet --disable-pip-version-check "$1"
    without_preload "$fresh/bin/flarena" run -- "$fresh/bin/python" -c 'import flarena; assert flarena.loaded() and "from-source" in flarena.__file__'
    "$fresh/bin/python" -c 'from importlib.metadata import files
[tag] = [line.split(": ")[1] for file in files("flarena") if file.name == "WHEEL" for line in file.read_text().splitlines() if line.startswith("Tag")]
assert "manylinux" not in tag, tag'
    [ -s "$(echo "$fresh"/lib/python3*/site-packages/flarena/THIRD-PARTY-LICENSES)" ]
}
# pip would compile all of it again, because its path is new: soak.sh does that. What the compiler has read for the checkout,
# and the files of the builder, are in it.
sdist_is_complete() {
    build/venv-release/bin/hatchling build --target sdist --directory "$SCRATCH/sdist"
    tar -tzf "$(echo "$SCRATCH"/sdist/flarena-*.tar.gz)" | cut -d / -f 2- | sort >"$SCRATCH/packed"
    {
        cat target/pip/release/{libflarena,flarena}.d | tr ' ' '\n' | grep "^$ROOT/src/" | xargs realpath --relative-to="$ROOT"
        git ls-files Cargo.toml Cargo.lock LICENSE README.md pyproject.toml sub_start.sh include scripts/package 'src/*/Cargo.toml' src/python
    } | sort -u >"$SCRATCH/needed"
    [ "$(grep -c '[.]rs$' "$SCRATCH/needed")" -gt 200 ]
    ! comm -23 "$SCRATCH/needed" "$SCRATCH/packed" | grep .
}
names_missing_tools() {
    local said
    said=$(PATH=$SCRATCH/venv/bin:/bin-without-tools "$venv/bin/python" -c '
import sys
sys.path.insert(0, "scripts/package")
import types
interface = types.ModuleType("interface")
interface.BuildHookInterface = object
sys.modules["hatchling.builders.hooks.plugin.interface"] = interface
import hatch_build, pathlib
hatch_build.build_with_cargo(pathlib.Path("."), pathlib.Path("."))' 2>&1) && return 1
    printf '%s\n' "$said"
    [[ $said == *"needs cargo, cc, make: install gcc and make, and Rust"* ]]
}
editable() { # the checkout's package, library and hooks, also in the folder that has the checkout under the package's name
    local fresh=$SCRATCH/editable
    python3 -m venv "$fresh"
    CARGO_TARGET_DIR=$ROOT/target/pip "$fresh/bin/pip" install --quiet --disable-pip-version-check -e .
    mkdir -p "$SCRATCH/beside"
    ln -sfn "$ROOT" "$SCRATCH/beside/flarena"
    (cd "$SCRATCH/beside" && without_preload NVFLARE_CLIENT_MEMORY_PROFILE=1 "$fresh/bin/flarena" run -- "$fresh/bin/python" -c \
        'import flarena, sys; print(flarena.__file__, flarena.loaded(), [type(f).__name__ for f in sys.meta_path].count("HookFinder"))' 2>/dev/null)
}
same_bill() {
    SOURCE_DATE_EPOCH=0 scripts/package/sbom.py "$(uname -m)-unknown-linux-gnu" >"$SCRATCH/bill"
    SOURCE_DATE_EPOCH=0 scripts/package/sbom.py "$(uname -m)-unknown-linux-gnu" | cmp - "$SCRATCH/bill"
    python3 -c '
import json, sys
bill = json.load(open(sys.argv[1]))
parts = {part["name"]: part for part in bill["components"]}
assert bill["metadata"]["timestamp"] == "1970-01-01T00:00:00Z" and parts["jemalloc"]["version"].startswith("5."), parts["jemalloc"]
assert parts["libc"]["hashes"] and parts["clap"]["purl"].startswith("pkg:cargo/clap@")' "$SCRATCH/bill"
}

test_source() {
    check "pip installs the checkout, built with cargo" from_source .
    check "the source distribution has each file that the build of the checkout reads" sdist_is_complete
    check "without compilers pip names the missing tools" names_missing_tools
    check_output "pip install -e . runs the checkout, also from the folder above it" "$ROOT/src/python/flarena/__init__.py True 1" editable
    check "the SBOM names the crates and jemalloc, and is the same when it is made again" same_bill
}
