#!/usr/bin/env bash
# Tests flarena for aarch64 under qemu's user mode, in a Debian root for aarch64: the shipped files are built, installed
# and used (packages), and suites run.
#
#   scripts/arm64.sh [PART...]      (packages, c, settings, markers, recycler, python, recycler@4k, recycler@16k)
#
# SUITE@4k and SUITE@16k run in an emulated machine, on an arm64 kernel with pages of that size. The script ends with a
# table and `N passed, N failed, N skipped`. It needs root for a chroot, and takes two hours. The Debian root is made once.
# qemu emulates the processor and some system calls; tests that cannot pass there are skipped with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/arm64/root.sh
. scripts/arm64/root.sh
PARTS=(packages c settings markers recycler python recycler@4k recycler@16k)

skip_all() {
    printf 'skip - the product works on aarch64 (%s)\n0 passed, 0 failed, 1 skipped\n' "$1"
    exit 0
}

[ "$(id -u)" -eq 0 ] || skip_all "a chroot needs root"
install_missing || skip_all "qemu-user-static, debootstrap or binutils-aarch64-linux-gnu cannot be installed"
rustup target add aarch64-unknown-linux-gnu >/dev/null 2>&1 || skip_all "Rust has no target aarch64-unknown-linux-gnu here"
register_qemu || skip_all "the kernel supports no other program formats"
make_root || skip_all "no package source of this machine has arm64"
scripts/build-release.sh "$(uname -m)" aarch64 >&2
fill_root
set +e # a part that fails is counted
# shellcheck source=scripts/counted.sh
. scripts/counted.sh
parts=("$@")
[ $# -gt 0 ] || parts=("${PARTS[@]}")
printf '# %s, %s\n' "$(in_root uname -m)" "$(qemu-aarch64-static --version | head -n 1)"
table=
for part in "${parts[@]}"; do
    before=("$PASSED" "$FAILED" "$SKIPPED")
    case $part in
        packages) run_counted part packages scripts/arm64/packages.sh ;;
        *@*) run_counted suite "$part" scripts/arm64/vm.sh "${part#*@}" "${part%@*}" ;;
        *) run_counted suite "$part" in_root "/flarena/tests/$part/run.sh" ;;
    esac
    table+=$(printf '%-12s %6d %6d %7d' "$part" $((PASSED - before[0])) $((FAILED - before[1])) $((SKIPPED - before[2])))$'\n'
done
printf 'part         passed failed skipped\n%s' "$table"
finish_counted
