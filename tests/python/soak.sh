#!/usr/bin/env bash
# The callbacks of the package in the trainers of PyTorch Lightning and Hugging Face. Their PyTorch takes 6 GB of disk.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HERE=$ROOT/tests/python
export COMMAND_TIMEOUT=300 PYTHONDONTWRITEBYTECODE=1

stages_of() { # TRAINER: prints each round and stage that it marks, sorted
    rm -f "$SCRATCH/markers"
    in_mode jemalloc NVFLARE_CLIENT_MEMORY_PROFILE=1 FLARENA_MARKER_FILE="$SCRATCH/markers" PYTHONPATH="$ROOT/src/python" \
        "$PYTHON" "$HERE/$1_markers.py" "$SCRATCH/output" >"$SCRATCH/trainer.log" 2>&1 || { cat "$SCRATCH/trainer.log"; return 1; }
    grep -oE '"site":"rank-0","round":[0-9]+,"stage":"[a-z_]+"' "$SCRATCH/markers" | cut -d '"' -f 7,10 | tr -d ':,' |
        tr '"' ' ' | grep -v -e exit -e periodic | sort | xargs
}

# Lightning 2.2 imports pkg_resources, which later versions of setuptools lack.
packages=(lightning==2.2.5 'setuptools<81' transformers==4.41.2 accelerate==0.30.1)
if ! venv=$("$ROOT/scripts/venv.sh" trainers "${packages[@]}" 2>"$SCRATCH/venv.log"); then
    cat "$SCRATCH/venv.log"
    skip "the callbacks of Lightning and Hugging Face" "their packages cannot be installed"
    finish
    exit
fi
PYTHON=$venv/bin/python
check_output "Lightning's callback marks begin and end of the training and the validation of each epoch" \
    "0 after_evaluate 0 after_train 0 before_evaluate 0 before_train 1 after_evaluate 1 after_train 1 before_evaluate 1 before_train" stages_of lightning
check_output "the callback of Hugging Face marks training, evaluation and checkpoint of each epoch" \
    "0 after_evaluate 0 after_train 0 before_train 0 saved 1 after_evaluate 1 after_train 1 before_train 1 saved" stages_of transformers
finish
