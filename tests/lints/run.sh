#!/usr/bin/env bash
# Format, clippy, shellcheck, imports, licences and documents.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT" || exit 1
# shellcheck source=scripts/first_dev_build.sh
. scripts/first_dev_build.sh

shell_files() {
    git ls-files -co --exclude-standard | while IFS= read -r file; do
        [ -f "$file" ] || continue
        case $file in
            *.sh) printf '%s\0' "$file" ;;
            *) if head -n 1 "$file" | grep -qaE '^#!.*\b(ba|da)?sh\b'; then printf '%s\0' "$file"; fi ;;
        esac
    done
}

shellcheck_all() {
    shell_files | xargs -0 -n 10 -P "$(nproc)" shellcheck -x -P SCRIPTDIR
}

need shellcheck || fail "shellcheck is installed" "install the package shellcheck"
rustup component add rustfmt clippy >/dev/null 2>&1
check "the Rust code is formatted" cargo fmt --all --check
check "clippy reports nothing" cargo clippy --quiet --workspace --all-targets -- -D warnings
check "shellcheck reports nothing" shellcheck_all
check "no file of a crate uses a layer above its own" python3 scripts/lints/layers.py
check "the check of layers finds each kind of use of a layer above" python3 scripts/lints/layers_test.py
check "licences, versions and sources of other people's crates are those of deny.toml" python3 scripts/lints/dependencies.py
check "every link and path in the documents leads somewhere" python3 scripts/lints/links.py
check "the NumPy figures of README.md and docs/results.md are those of docs/numpy.json" python3 scripts/lints/figures.py
check "SECURITY.md names every request of the control channel and every file of the kernel that is read" python3 scripts/lints/security.py
finish
