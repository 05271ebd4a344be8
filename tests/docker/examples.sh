# shellcheck shell=bash disable=SC2154  # part of run.sh
# The files of docker/ that users copy: each is run, or checked with the schema of the program that reads it.

EXAMPLES=$ROOT/docker
MOUNT_EXAMPLES=(-v "$EXAMPLES:/examples:ro" -v "$SCRATCH/manifests:/out")

make_nvflare() {
    "$ROOT/scripts/docker/nvflare-image.sh" && build_image flarena-test:nvflare flarena-test:nvflare-flarena
}

# The base image has a user other than root and a preload: the image must keep both.
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

# Checks with the launcher's own parser, and writes the pod that it would create.
launcher_reads() { # docker|k8s FILE
    inside nvflare-flarena "${MOUNT_EXAMPLES[@]}" -- python3 /t/study_runtime.py "$1" "/examples/$2"
}

matches_schema() { # FILE...
    local venv
    venv=$("$ROOT/scripts/venv.sh" kubernetes-validate kubernetes-validate)
    "$venv/bin/kubernetes-validate" --strict "$@"
}

mkdir -m 777 "$SCRATCH/manifests"
check "docker/Dockerfile builds on an image with nvflare" make_nvflare
check_output "docker/Dockerfile keeps the user and the preload of the base image" \
    $'1000\n/opt/flarena/lib/libflarena.so:libjemalloc.so.2\nglibc' keeps_base
check "compose reads docker/compose.yaml" compose_config
check "NVFlare's Docker launcher reads docker/study_runtime.yaml" launcher_reads docker study_runtime.yaml
check "NVFlare's Kubernetes launcher reads docker/kubernetes/study_runtime.yaml" \
    launcher_reads k8s kubernetes/study_runtime.yaml
check "the pods that NVFlare makes from it match Kubernetes' schema" matches_schema "$SCRATCH"/manifests/*.yaml
check "docker/kubernetes/client.yaml matches Kubernetes' schema" matches_schema "$EXAMPLES/kubernetes/client.yaml"
