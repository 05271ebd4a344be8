#!/usr/bin/env bash
# Stands for apptainer: runs a command in the environment that a container gets, the variables APPTAINERENV_NAME and the PATH
# of its image. The folder of this file has the image, which is an environment of Python here.
image=$(dirname "$0")/venv
until [ "${1##*/}" = image.sif ]; do
    [ "$1" != --pwd ] || cd "$2" || exit 1
    shift
done
mapfile -t variables < <(compgen -e APPTAINERENV_)
for name in "${variables[@]}"; do
    inside+=("${name#APPTAINERENV_}=${!name}")
done
exec env -i HOME="$HOME" PATH="$image/bin:/usr/bin:/bin" "${inside[@]}" "${@:2}"
