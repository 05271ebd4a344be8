#!/usr/bin/env bash
# Part of scripts/arm64.sh: runs a suite on an arm64 kernel in an emulated machine. mremap, madvise, mincore, limits and the
# page size are the kernel's there; qemu's user mode only imitates them. The machine has the root of arm64.sh in memory.
#
#   scripts/arm64/vm.sh 4k|16k SUITE      with pages of this size; Debian has no kernel with 64 KiB
#
# The exit status is the suite's. Where the machine cannot be made the suite is skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/arm64/root.sh
. scripts/arm64/root.sh
PAGE=$1
SUITE=$2
VM=$WORK/vm
PATIENCE_SECONDS=${PATIENCE_SECONDS:-7200}

skip_all() {
    printf 'skip - the suite %s passes on an arm64 kernel (%s)\n' "$SUITE" "$1"
    exit 0
}

install_tools() {
    command -v qemu-system-aarch64 >/dev/null && command -v cpio >/dev/null && return
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
        qemu-system-arm cpio >/dev/null 2>&1 || skip_all "qemu-system-arm cannot be installed"
}

# apt for arm64, with lists outside of this machine's apt.
foreign_apt() { # apt-get|apt-cache ARGUMENT...
    local tool=$1
    shift
    "$tool" -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Etc::SourceList="$VM/sources.list" \
        -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$VM/lists" -o Dir::Cache="$VM/cache" \
        -o Dir::State::status=/dev/null -o APT::Sandbox::User=root "$@"
}

# The kernel package is unpacked, not installed.
fetch_kernel() {
    local flavour=cloud-arm64 package
    [ "$PAGE" = 4k ] || flavour=arm64-$PAGE
    compgen -G "$VM/$PAGE/boot/vmlinuz-*" >/dev/null && return
    mkdir -p "$VM"/{lists,cache/archives}/partial
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(package_site) trixie main" >"$VM/sources.list"
    foreign_apt apt-get update >/dev/null 2>&1 || skip_all "no package source of this machine has trixie for arm64"
    package=$(foreign_apt apt-cache search "^linux-image-[0-9].*-$flavour\$" | cut -d' ' -f1 | sort -V | tail -n 1)
    (cd "$VM" && foreign_apt apt-get download "$package" >/dev/null 2>&1 && dpkg -x "$package"_*.deb "$PAGE") ||
        skip_all "no kernel package can be downloaded"
}

# The first process of the machine mounts, runs the suite, and turns the machine off.
write_init() { # FILE
    cat >"$1" <<END
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TIMEOUT_FACTOR=5
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
ln -s /proc/self/fd /dev/fd; ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts pts /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup; echo "+memory +cpu" >/sys/fs/cgroup/cgroup.subtree_control
echo madvise >/sys/kernel/mm/transparent_hugepage/enabled # the default of most systems, which the tests need
echo 1 >/proc/sys/kernel/printk
echo "# Linux \$(uname -r), pages of \$(getconf PAGESIZE)" >/dev/console
/flarena/tests/$SUITE/run.sh </dev/null >/dev/console 2>&1
echo "exit status \$?" >/dev/console
echo o >/proc/sysrq-trigger
sleep 60
END
    chmod +x "$1"
}

pack_root() { # FILE
    (cd "$ROOT_OF_ARM64" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./opt -o -path ./usr/share/doc \
        -o -path ./usr/share/man -o -path ./usr/share/locale -o -path ./var/cache -o -path ./var/lib/apt \) -prune -o -print0 |
        cpio -0 -o -H newc --quiet >"$1")
    (cd "$SCRATCH/own" && find . | cpio -o -H newc --quiet >>"$1")
}

boot() { # INITRD
    timeout "$PATIENCE_SECONDS" qemu-system-aarch64 -M virt -accel tcg,thread=multi -cpu max,pauth-impdef=on -m 6144 -smp 2 \
        -nographic -nic none -no-reboot -kernel "$VM/$PAGE"/boot/vmlinuz-* -initrd "$1" \
        -append "console=ttyAMA0 quiet loglevel=1 panic=-1" </dev/null || true
}

case $PAGE in 4k | 16k) ;; *) echo "usage: vm.sh 4k|16k SUITE" >&2 && exit 2 ;; esac
install_tools
fetch_kernel
SCRATCH=$(mktemp -d "$VM/XXXXXX")
trap 'rm -rf "$SCRATCH"' EXIT
mkdir -p "$SCRATCH"/own/{proc,sys,dev,tmp}
write_init "$SCRATCH/own/init"
pack_root "$SCRATCH/initrd"
boot "$SCRATCH/initrd" | sed -u 's,\r$,,' | tee "$SCRATCH/console"
status=$(sed -n 's/^exit status //p' "$SCRATCH/console")
[ -n "$status" ] || { echo "not ok - the emulated machine ends within $PATIENCE_SECONDS s" && exit 1; }
exit "$status"
