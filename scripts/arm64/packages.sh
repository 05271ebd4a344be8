#!/usr/bin/env bash
# Part of scripts/arm64.sh: installs and uses the wheel, the Debian package and the image for aarch64.
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib.sh
. tests/lib.sh
# shellcheck source=scripts/arm64/root.sh
. scripts/arm64/root.sh

VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
IMAGE=flarena-test:arm64
# Like a user's job: a large block, and a marker.
PROGRAM='
import flarena, platform
block = bytearray(64 << 20)
flarena.mark("send", "site-1", 3)
print(platform.machine(), flarena.loaded(), flarena.allocator(), flarena.stats()["recycler"]["live_bytes"] >= len(block))'
OUTPUT='aarch64 True MODE True'
MARKS=NVFLARE_CLIENT_MEMORY_PROFILE=1

expected() { # MODE: the program's output and its marker
    printf '%s\nsend s=site-1 r=3' "${OUTPUT/MODE/$1}"
}

# Prints the program's line, and its marker without the number.
runs_program() { # COMMAND...
    "$@" -c "$PROGRAM" >"$SCRATCH/out" 2>"$SCRATCH/err" || { cat "$SCRATCH/out" "$SCRATCH/err"; return 1; }
    cat "$SCRATCH/out"
    sed -nE 's/^\[RSS\].* s=site-1 r=3 send: [0-9.]+ MB$/send s=site-1 r=3/p' "$SCRATCH/err"
}

switch_for() { # MODE: the variable that selects it
    echo "NVFLARE_ENABLE_JEMALLOC_PRELOAD=$([ "$1" = jemalloc ] && echo true || echo false)"
}

# Warnings about this machine (exit status 1) are expected. There must be no error, and the library's path.
doctor_finds() { # LIBRARY COMMAND...
    local library=$1 status=0
    shift
    "$@" --json >"$SCRATCH/doctor" || status=$?
    cat "$SCRATCH/doctor"
    [ "$status" -le 1 ]
    grep -qF "$library" "$SCRATCH/doctor"
    jq -e '.findings | length > 0 and all(.level != "error")' "$SCRATCH/doctor" >/dev/null
}

agrees_with_its_tag() { # WHEEL
    local report
    report=$(build/venv-release/bin/auditwheel show "$1" 2>&1) || { echo "$report"; return 1; }
    printf '%s\n' "$report"
    tr '\n' ' ' <<<"$report" | grep -q 'is consistent with the following platform tag: "manylinux_2_17_aarch64"'
}

test_wheel() {
    local wheel mode venv=/opt/venv
    wheel=build/dist/flarena-$VERSION-py3-none-manylinux2014_aarch64.whl
    check "the wheel for aarch64 is built" scripts/build-wheel.sh aarch64
    check "auditwheel confirms the platform tag of the wheel" agrees_with_its_tag "$wheel"
    cp "$wheel" "$ROOT_OF_ARM64/tmp/" && rm -rf --one-file-system "$ROOT_OF_ARM64$venv"
    check "pip installs the wheel on aarch64" \
        in_root sh -c "python3 -m venv $venv && $venv/bin/pip install --quiet --no-index --disable-pip-version-check /tmp/${wheel##*/}"
    check_output "wheel: the command prints its version" "flarena $VERSION" in_root $venv/bin/flarena --version
    check "wheel: the doctor finds the wheel's library" doctor_finds $venv/lib in_root $venv/bin/flarena doctor
    for mode in glibc jemalloc; do
        check_output "wheel: Python runs with the library in $mode mode, and marks" "$(expected $mode)" \
            runs_program in_root env "$(switch_for $mode)" $MARKS $venv/bin/flarena run -- $venv/bin/python
    done
}

# qemu can report a larger page size than the kernel's, and maps with it. Its mincore uses the kernel's size.
test_large_pages() {
    local mode shown='import os, flarena; blocks = [bytearray(size << 20) for size in (1, 2, 3, 5, 9)] * 2
del blocks[:]; block = bytearray(7 << 20); live = flarena.stats()["recycler"]["live_bytes"]
print(os.sysconf("SC_PAGESIZE"), flarena.allocator(), live >= len(block), live % 65536)'
    for mode in glibc jemalloc; do
        check_output "pages of 64 KiB: Python runs with the library in $mode mode, and blocks are whole pages" "65536 $mode True 0" \
            in_root env QEMU_PAGESIZE=65536 "$(switch_for $mode)" /opt/venv/bin/flarena run -- /opt/venv/bin/python -c "$shown"
    done
}

test_deb() {
    local deb=build/dist/flarena_${VERSION}_arm64.deb mode library=/usr/lib/aarch64-linux-gnu/libflarena.so
    check "the Debian package for arm64 is built" scripts/build-deb.sh aarch64
    cp "$deb" "$ROOT_OF_ARM64/tmp/"
    check "dpkg installs the package on arm64" in_root dpkg --install "/tmp/${deb##*/}"
    check_output "each installed file has the checksum of the package" "" in_root dpkg --verify flarena
    check_output "the package's architecture is arm64" arm64 dpkg-deb -f "$deb" Architecture
    check "package: the library is in the folder of aarch64" [ -f "$ROOT_OF_ARM64$library" ]
    check_output "package: the command prints its version" "flarena $VERSION" in_root flarena --version
    check "package: the doctor finds the package's library" doctor_finds $library in_root flarena doctor
    for mode in glibc jemalloc; do
        check_output "package: Python runs with the library in $mode mode, and marks" "$(expected $mode)" \
            runs_program in_root env PYTHONPATH=/usr/share/flarena/python "$(switch_for $mode)" $MARKS flarena run -- python3
    done
    check "dpkg removes the package" in_root dpkg --purge flarena
}

# Loads the root without compiler and documents, as an archive: docker import of older engines ignores the platform.
load_base() {
    local archive=$SCRATCH/base sum
    mkdir -p "$archive"
    tar -C "$ROOT_OF_ARM64" --numeric-owner --exclude='./flarena' --exclude='./opt/*' --exclude='./tmp/*' --exclude='./dev/*' \
        --exclude='./proc/*' --exclude='./sys/*' --exclude='./usr/lib/gcc' --exclude='./var/cache/apt/*' --exclude='./usr/share/doc/*' \
        -cf "$archive/layer.tar" .
    sum=$(sha256sum "$archive/layer.tar" | cut -d' ' -f1)
    printf '{"architecture":"arm64","os":"linux","config":{"Cmd":["bash"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$sum" >"$archive/config.json"
    printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' $IMAGE-base >"$archive/manifest.json"
    tar -C "$archive" -c . | docker load
    rm -r "$archive"
}

# Engines without docker buildx have the classic builder. Both run the steps with the registered qemu.
build_image() {
    local build=(docker buildx build --load)
    docker buildx version >/dev/null 2>&1 || build=(env DOCKER_BUILDKIT=0 docker build)
    load_base
    "${build[@]}" --platform linux/arm64 -f docker/Dockerfile --build-arg BASE=$IMAGE-base --build-arg ARCH=aarch64 -t $IMAGE .
}

in_image() { # [DOCKER-OPTION...] -- COMMAND...
    local BEFORE AFTER
    split_at_dashes "$@"
    timeout 120 docker run --rm --platform linux/arm64 --network none "${BEFORE[@]}" $IMAGE "${AFTER[@]}"
}

test_image() {
    local mode
    timeout 20 docker info >/dev/null 2>&1 || { skip "the image for arm64 works" "no Docker engine answers"; return; }
    check "docker/Dockerfile builds for linux/arm64" build_image
    check_output "the image's architecture is arm64" arm64 docker image inspect -f '{{.Architecture}}' $IMAGE
    # shellcheck disable=SC2016  # for the container's shell
    check_output "image: MIMALLOC_PURGE_DELAY is 0, for PyTorch's mimalloc" 0 in_image -- sh -c 'echo "$MIMALLOC_PURGE_DELAY"'
    check_output "image: the command prints its version" "flarena $VERSION" in_image -- flarena --version
    check "image: the doctor finds the image's library" doctor_finds /opt/flarena/lib/libflarena.so in_image -- flarena doctor
    for mode in glibc jemalloc; do
        check_output "image: Python runs with the library in $mode mode, and marks" "$(expected $mode)" \
            runs_program in_image -e "$(switch_for $mode)" -e $MARKS -- python3
    done
}

test_wheel
test_large_pages
test_deb
test_image
finish
