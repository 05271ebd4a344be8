#!/usr/bin/env bash
# Makes the Docker image flarena-test:SUITE with mmdebstrap, from the package source of this machine's apt. No image
# registry is needed.
#
#   scripts/docker/base-image.sh SUITE        (bullseye, bookworm, trixie, sid ...)
#
# Exit status: 0 the image exists, 1 it could not be made, 2 wrong usage, 3 the package source has no such suite.
# An existing image is kept until this script changes.

set -euo pipefail

# The tests need an interpreter with ctypes, ps, and the system's jemalloc.
PACKAGES=python3,procps,libjemalloc2
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
WORK=$ROOT/build/docker

fail() { # STATUS MESSAGE
    printf 'base-image: %s\n' "$2" >&2
    exit "$1"
}

install_missing() { # COMMAND-OR-FILE PACKAGE
    command -v "$1" >/dev/null || [ -e "$1" ] && return
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    # A fresh machine has no package lists yet. The lock is that of tests/lib.sh.
    (flock 8 && { "${apt[@]}" install "$2" || { "${apt[@]}" update && "${apt[@]}" install "$2"; }; }) \
        >&2 8>"${TMPDIR:-/tmp}/flarena-apt-$(id -u).lock" || fail 1 "package $2 is missing and apt-get could not install it"
}

# The sites of apt's configuration, each once, in apt's order.
package_sites() {
    # shellcheck disable=SC2016  # apt expands these
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | awk '!seen[$0]++'
}

use_apt_proxy() { # wget and the apt of mmdebstrap do not read this machine's configuration
    local http='' https=''
    eval "$(apt-config shell http Acquire::http::Proxy https Acquire::https::Proxy)"
    [ -z "$http" ] || export http_proxy=$http
    [ -z "$https" ] || export https_proxy=$https
}

# A keyring of this machine that verifies the suite's signature. A suite newer than the installed keyring needs the
# latest keyring package, which apt verifies.
keyring_for() { # RELEASE-FILE
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    install_missing "$keyring" debian-archive-keyring
    if ! gpgv -q --keyring "$keyring" "$1" >/dev/null 2>&1; then
        (cd "$SCRATCH" && apt-get -q download debian-archive-keyring >/dev/null 2>&1 &&
            dpkg -x debian-archive-keyring_*.deb keyring) || return 1
        keyring=$SCRATCH/keyring$keyring
        gpgv -q --keyring "$keyring" "$1" >/dev/null 2>&1 || return 1
    fi
    printf '%s\n' "$keyring"
}

# Sets SITE and KEYRING to the first configured site with a signed copy of the suite.
find_source() { # SUITE
    local unsigned=''
    for SITE in $(package_sites); do
        wget -q -O "$SCRATCH/InRelease" "$SITE/dists/$1/InRelease" || continue
        KEYRING=$(keyring_for "$SCRATCH/InRelease") && return
        unsigned=yes
    done
    [ -z "$unsigned" ] || fail 1 "the signature of $1 could not be verified with this machine's keyrings"
    fail 3 "no package source of this machine carries $1"
}

# The copy of a package source may be older than its signature permits.
make_image() { # SUITE
    mmdebstrap --variant=minbase --include="$PACKAGES" --keyring="$KEYRING" --skip=output/dev \
        --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        "$1" "$SCRATCH/root.tar" "$SITE" >"$WORK/$1.log" 2>&1 ||
        fail 1 "mmdebstrap failed; the end of build/docker/$1.log: $(tail -n 3 "$WORK/$1.log")"
    docker import -c 'CMD ["bash"]' -c "LABEL flarena.recipe=$RECIPE" "$SCRATCH/root.tar" "flarena-test:$1" >/dev/null
}

is_current() { # SUITE
    [ "$(docker image inspect -f '{{index .Config.Labels "flarena.recipe"}}' "flarena-test:$1" 2>/dev/null)" = "$RECIPE" ]
}

[[ $# -eq 1 && $1 =~ ^[a-z]+$ ]] || fail 2 "usage: base-image.sh SUITE"
RECIPE=$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-16)
mkdir -p "$WORK"
exec 9>"$WORK/$1.lock" && flock 9 # another process may be making the same image
! is_current "$1" || exit 0
[ "$(id -u)" -eq 0 ] || fail 1 "mmdebstrap needs root"
command -v apt-get >/dev/null || fail 1 "mmdebstrap needs a package source; this machine has no apt"

SCRATCH=$(mktemp -d "$WORK/$1.XXXXXX")
trap 'rm -rf "$SCRATCH"' EXIT
install_missing mmdebstrap mmdebstrap
install_missing wget wget
use_apt_proxy
find_source "$1"
make_image "$1"
