# shellcheck shell=bash disable=SC2154  # part of run.sh
# The files of docker/ that users copy: each is run, or checked by the schema of who reads it.

EXAMPLES=$ROOT/docker
MOUNT_EXAMPLES=(-v "$EXAMPLES:/examples:ro" -v "$SCRATCH/manifests:/out")

make_nvflare() {
    "$ROOT/scripts/docker/nvflare-image.sh" && build_image flarena-test:nvflare flarena-test:nvflare-flarena
}

# An image whose own user is not root, with a preload of its own: neither may be lost.
keeps_base() {
    printf 'FROM flarena-test:bookworm\nRUN mkdir -m 777 /home/app\nENV HOME=/home/app LD_PRELOAD=libjemalloc.so.2\nUSER 1000:1000\n' |
        DOCKER_BUILDKIT=0 docker build -q -t flarena-test:own-user - >/dev/null 2>&1
    build_image flarena-test:own-user flarena-test:own-user-flarena >/dev/null 2>&1
    # shellcheck disable=SC2016  # for the container's shell
    inside own-user-flarena -- sh -c 'id -u; echo $LD_PRELOAD; python3 -c "import flarena; print(flarena.allocator())"'
}

compose_config() {
    IMAGE=any KITS=/kits compose -f "$EXAMPLES/compose.yaml" config
}

# NVFlare's launcher, not its documentation: its parser, and the pod that it would create.
launcher_reads() { # docker|k8s FILE
    inside nvflare-flarena "${MOUNT_EXAMPLES[@]}" -- python3 /t/study_runtime.py "$1" "/examples/$2"
}

matches_schema() { # FILE...
    local venv=$ROOT/build/docker/venv-kubernetes
    if [ ! -x "$venv/bin/kubernetes-validate" ]; then
        python3 -m venv "$venv" && "$venv/bin/python" -m pip install -q --disable-pip-version-check kubernetes-validate
    fi
    "$venv/bin/kubernetes-validate" --strict "$@"
}

mkdir -m 777 "$SCRATCH/manifests"
check "docker/Dockerfile builds on an image with nvflare" make_nvflare
check_output "docker/Dockerfile keeps the base image's user and preload" \
    $'1000\n/opt/flarena/lib/libflarena.so:libjemalloc.so.2\nglibc' keeps_base
check "docker/compose.yaml is read by compose" compose_config
check "docker/study_runtime.yaml is read by NVFlare's Docker launcher" launcher_reads docker study_runtime.yaml
check "docker/kubernetes/study_runtime.yaml is read by NVFlare's Kubernetes launcher" \
    launcher_reads k8s kubernetes/study_runtime.yaml
check "the pods that NVFlare makes of it match Kubernetes' schema" matches_schema "$SCRATCH"/manifests/*.yaml
check "docker/kubernetes/client.yaml matches Kubernetes' schema" matches_schema "$EXAMPLES/kubernetes/client.yaml"
