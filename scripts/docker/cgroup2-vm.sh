#!/usr/bin/env bash
# Runs a script under a memory limit and a CPU quota of cgroup v2, in a virtual machine. It boots a Debian kernel with a
# flarena image as its root file system. For machines whose Docker engine has only cgroup v1.
#
#   scripts/docker/cgroup2-vm.sh IMAGE MEMORY_MAX CPU_MAX SCRIPT      e.g. ... 268435456 "50000 100000" 'python3 /t/x.py'
#
# sh runs SCRIPT in the limited group, with the image's environment and tests/docker/programs at /t. Its output is
# printed, and its exit status is the last line. The machine is emulated and takes about a minute. Exit status 77: there
# is no such machine here, or it does not end within PATIENCE_SECONDS (200).

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
WORK=$ROOT/build/docker/vm
PATIENCE_SECONDS=${PATIENCE_SECONDS:-200}

fail() {
    printf 'cgroup2-vm: %s\n' "$1" >&2
    exit "${2:-1}"
}

install_tools() {
    if ! command -v qemu-system-x86_64 >/dev/null || ! command -v cpio >/dev/null; then
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 \
            qemu-system-x86 cpio >/dev/null 2>&1 || fail "qemu-system-x86 cannot be installed" 77
    fi
}

# The kernel package is unpacked, not installed: the boot files of this machine do not change.
fetch_kernel() {
    compgen -G "$WORK/kernel/boot/vmlinuz-*" >/dev/null && return
    local package
    package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2; exit}')
    mkdir -p "$WORK"
    (cd "$WORK" && apt-get -q download "$package" >/dev/null 2>&1 && dpkg -x "$package"_*.deb kernel) ||
        fail "no kernel package can be downloaded" 77
}

# The first process of the machine mounts, makes the limited group, runs the script, and turns the machine off.
write_init() { # FILE MEMORY_MAX CPU_MAX
    cat >"$1" <<END
#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+memory +cpu" >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job
echo $2 >/sys/fs/cgroup/job/memory.max
echo "$3" >/sys/fs/cgroup/job/cpu.max
echo 1 >/proc/sys/kernel/printk
echo "script starts" >/dev/ttyS0
sh -c '. /environment; echo 0 >/sys/fs/cgroup/job/cgroup.procs; exec sh /script' </dev/null >/dev/ttyS0 2>&1
echo "exit status \$?" >/dev/ttyS0
echo o >/proc/sysrq-trigger
sleep 60
END
    chmod +x "$1"
}

make_root() { # IMAGE DIRECTORY
    local container
    container=$(docker create "$1")
    docker export "$container" | tar -C "$2" --exclude 'dev/*' -x
    docker rm "$container" >/dev/null
    docker image inspect -f '{{range .Config.Env}}{{println .}}{{end}}' "$1" |
        sed -n "s/'/'\\\\''/g; s/^\([A-Z_]*\)=\(.*\)/export \1='\2'/p" >"$2/environment"
    cp -r "$ROOT/tests/docker/programs" "$2/t"
}

# The console also has the output of firmware and kernel before the script starts. On a busy host the emulated timer
# looks broken; no_timer_check keeps the kernel from stopping.
boot() { # INITRD
    timeout "$PATIENCE_SECONDS" qemu-system-x86_64 -accel tcg -cpu max -m 2048 -smp 2 -nographic -no-reboot \
        -kernel "$WORK"/kernel/boot/vmlinuz-* -initrd "$1" \
        -append "console=ttyS0 quiet loglevel=1 panic=-1 mitigations=off no_timer_check" </dev/null >"$SCRATCH/console" || true
    tr -d '\r' <"$SCRATCH/console" | sed '1,/script starts$/d'
    grep -aq '^exit status ' "$SCRATCH/console" || fail "the virtual machine did not end within $PATIENCE_SECONDS s" 77
}

[ $# -eq 4 ] || fail "usage: cgroup2-vm.sh IMAGE MEMORY_MAX CPU_MAX SCRIPT" 2
[ "$(uname -m)" = x86_64 ] || fail "supports x86_64 only" 77
install_tools
fetch_kernel
SCRATCH=$(mktemp -d "$WORK/XXXXXX")
trap 'rm -rf "$SCRATCH"' EXIT
mkdir "$SCRATCH/root"
make_root "$1" "$SCRATCH/root"
write_init "$SCRATCH/root/init" "$2" "$3"
printf '%s\n' "$4" >"$SCRATCH/root/script"
(cd "$SCRATCH/root" && find . | cpio -o -H newc --quiet >"$SCRATCH/initrd")
boot "$SCRATCH/initrd"
