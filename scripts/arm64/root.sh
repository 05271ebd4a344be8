# shellcheck shell=bash disable=SC2034  # part of scripts/arm64.sh, from the repository's root
# Makes a Debian root for aarch64 and runs commands in it. The kernel starts its programs with qemu.

WORK=$PWD/build/arm64
ROOT_OF_ARM64=$WORK/root
RELEASE=bookworm
PACKAGES=python3,python3-numpy,python3-venv,gcc,g++,libc6-dev,make,procps,util-linux,binutils,git,jq

# The first site of apt's configuration.
package_site() {
    # shellcheck disable=SC2016  # apt expands it
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -n 1
}

install_missing() {
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends)
    command -v qemu-aarch64-static >/dev/null && command -v debootstrap >/dev/null &&
        command -v aarch64-linux-gnu-objcopy >/dev/null && return
    "${apt[@]}" qemu-user-static debootstrap binutils-aarch64-linux-gnu >&2
}

# The kernel starts aarch64 programs with qemu. With the flag F it opens qemu now, so that roots and images need no qemu.
register_qemu() {
    local formats=/proc/sys/fs/binfmt_misc
    [ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats 2>/dev/null || return 1
    [ ! -e $formats/qemu-aarch64 ] || return 0
    printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$(command -v qemu-aarch64-static)"':F' >$formats/register
}

make_root() {
    [ ! -e "$WORK/.ready" ] || return 0
    rm -rf --one-file-system "$ROOT_OF_ARM64"
    mkdir -p "$WORK"
    debootstrap --arch=arm64 --variant=minbase --include="$PACKAGES" $RELEASE "$ROOT_OF_ARM64" "$(package_site)" >"$WORK/root.log" 2>&1 || {
        tail -n 3 "$WORK/root.log" >&2
        return 1
    }
    : >"$WORK/.ready"
}

# Copies the tracked files, and the release build to the place where suites look for the library.
fill_root() {
    local here=$ROOT_OF_ARM64/flarena
    rm -rf --one-file-system "$here"
    mkdir -p "$here/target/release"
    git ls-files -z | xargs -0 tar -c | tar -x -C "$here"
    cp build/release/aarch64/{libflarena.so,flarena} "$here/target/release"
}

in_root() { # COMMAND...
    # The mounts end with the namespace.
    # shellcheck disable=SC2016  # the inner shell expands them
    unshare --mount --pid --fork -- bash -c '
        mount --make-rprivate /
        mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TIMEOUT_FACTOR=3 "$@"' "$ROOT_OF_ARM64" "$@"
}
