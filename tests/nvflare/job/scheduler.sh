#!/usr/bin/env bash
# Stands for sbatch, squeue, sacct and scancel, by its file name. It runs batch scripts on this machine, in the environment
# that --export=NIL gives them. Its folder has a file for each job: process, name and comment.
set -u
jobs=$(dirname "$0")

value() { # OPTION WORD...: prints the value of --OPTION=VALUE
    printf '%s\n' "${@:2}" | sed -n "s/^--$1=//p"
}
state_of() { # ID
    if [ -e "$jobs/$1.status" ]; then echo COMPLETED; else echo RUNNING; fi
}

case ${0##*/} in
    sbatch)
        [ "$(value export "$@")" = NIL ] || exit 1
        id=$$
        cd "$(value chdir "$@")" || exit 1
        output=$(value output "$@")
        (
            env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$HOME" USER="$(id -un)" SLURM_JOB_ID=$id SLURM_RESTART_COUNT=0 "${!#}"
            echo $? >"$jobs/$id.status"
        ) >"${output/\%j/$id}" 2>&1 </dev/null &
        printf '%s\n' $! "$(value job-name "$@")" "$(value comment "$@")" >"$jobs/$id"
        echo $id
        ;;
    squeue)
        for job in "$jobs"/[0-9]*; do
            id=${job##*/}
            case $id in *.status | '[0-9]*') continue ;; esac
            { read -r && read -r name && read -r comment; } <"$job"
            [ "$name" != "$(value name "$@")" ] || [ -e "$job.status" ] || echo "$id|$(state_of "$id")|$(id -u)|$comment|$name"
        done
        ;;
    sacct)
        id=$(value jobs "$@")
        [ -n "$id" ] || exit 0
        { read -r && read -r name; } <"$jobs/$id"
        echo "$id|$name|$(id -un)|$(state_of "$id")|0:0|0:0"
        ;;
    scancel) pkill -TERM -P "$(head -n 1 "$jobs/${!#}")" ;;
esac
