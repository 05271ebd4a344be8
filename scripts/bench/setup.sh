# shellcheck shell=bash
# Sourced by bench.sh: the packages a comparison needs, and the library under test.

# Debian's own Python and torch: PyPI's torch would bring gigabytes of CUDA libraries. The reference BLAS is many times slower.
packages=(gcc libc6-dev make binutils python3-venv libjemalloc2 libmimalloc2.0 libtcmalloc-minimal4 libtbbmalloc2 cmake g++ python3 python3-numpy python3-torch libopenblas0-pthread)

# install_missing: installs what is missing, or names it and goes on (a missing peer is left out, and said so).
install_missing() {
  local missing=() package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q '^install ok' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "bench: installing ${missing[*]}" >&2
  apt-get update -qq >&2 || true
  for package in "${missing[@]}"; do # one by one: a name this release does not have must not stop the others
    apt-get install -y -qq --no-install-recommends "$package" >&2 || echo "bench: could not install $package" >&2
  done
}

# build_library: what ships, from the current sources. cargo's own build differs: another compiler for jemalloc,
# another unwinder.
build_library() {
  (cd "$(dirname "${BASH_SOURCE[0]}")/../.." && scripts/build-release.sh --library "$(uname -m)") || {
    echo "bench: scripts/build-release.sh --library failed" >&2
    exit 1
  }
}
