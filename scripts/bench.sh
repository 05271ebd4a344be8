#!/usr/bin/env bash
# Compares flarena with other allocators.
#
#   scripts/bench.sh [--quick] [--only NAME,NAME] [WORKLOAD...]     --help lists workloads and options
#
# Installs missing packages, builds the library, and runs scripts/bench/main.py. The tables are written to
# build/bench/results.md.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)

# Debian's torch, because PyPI's brings gigabytes of CUDA libraries. OpenBLAS, because the reference BLAS is many times slower.
packages=(gcc libc6-dev make binutils python3-venv libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libtbbmalloc2 cmake g++ python3 python3-numpy python3-torch libopenblas0-pthread)

# Installs missing packages. One that cannot be installed is reported, and its peer is left out.
install_missing() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "bench: installing ${missing[*]}" >&2
  apt-get update -qq >&2 || true
  for package in "${missing[@]}"; do # one by one: an unknown name must not stop the others
    apt-get install -y -qq --no-install-recommends "$package" >&2 || echo "bench: could not install $package" >&2
  done
}

case " $* " in
*" --help "* | *" -h "*) ;;
*)
  install_missing
  # The release library: a plain cargo build uses another compiler for jemalloc and another unwinder.
  [ -n "${FLARENA_LIB:-}" ] || "$scripts/build-release.sh" --library "$(uname -m)"
  ;;
esac
exec /usr/bin/python3 "$scripts/bench/main.py" "$@"
