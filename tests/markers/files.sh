# shellcheck shell=bash disable=SC2154  # part of run.sh
# Part of run.sh: where markers cannot be written, or nobody reads them. The job goes on.

file_mode() { # MODE
    (
        umask 0
        in_mode "$1" "$PROFILE" FLARENA_MARKER_FILE="$WORK/json" "$MARK" one a b 1 >/dev/null 2>&1
    )
    stat -c %a "$WORK/json"
    [ "$(stat -c %a "$WORK/json")" = 600 ]
}

# The job goes on, its markers still reach stderr, and one line in all says what is wrong.
one_note() { # MODE FILE [COMMAND PREFIX...]
    local mode=$1 file=$2
    shift 2
    in_mode "$mode" "$PROFILE" FLARENA_MARKER_FILE="$file" "$@" "$MARK" many 4 50 >"$WORK/out" 2>"$WORK/err"
    grep -v '^\[RSS\]' "$WORK/err" | head -n 5
    [ "$(cat "$WORK/out")" = "done" ]
    [ "$(grep -c 'send:' "$WORK/err")" -eq 200 ]
    [ "$(grep -vc '^\[RSS\]' "$WORK/err")" -eq 1 ]
    grep -v '^\[RSS\]' "$WORK/err" | grep -qF "$file"
}

symlink_is_refused() { # MODE
    echo precious >"$WORK/target"
    ln -s "$WORK/target" "$WORK/link"
    one_note "$1" "$WORK/link"
    [ "$(cat "$WORK/target")" = precious ]
}

may_become_nobody() {
    [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null
}

as_nobody() { # MODE
    may_become_nobody || { echo "needs root and setpriv"; exit 77; }
    chmod 755 "$SCRATCH" "$WORK"
    mkdir -m 700 "$WORK/closed"
    cp "$LIB" "$WORK/"
    chmod 755 "$WORK/$(basename "$LIB")" "$MARK"
    chmod 777 "$WORK"
    # setpriv comes first: it would say it too.
    without_preload setpriv --reuid=65534 --regid=65534 --clear-groups env LD_PRELOAD="$WORK/$(basename "$LIB")" \
        NVFLARE_ENABLE_JEMALLOC_PRELOAD="$(is_jemalloc "$1")" "$PROFILE" FLARENA_MARKER_FILE="$WORK/closed/file" \
        "$MARK" many 2 5 2>"$WORK/err" >/dev/null
    cat "$WORK/err"
    [ "$(grep -vc '^\[RSS\]' "$WORK/err")" -eq 1 ]
    [ "$(grep -c 'send:' "$WORK/err")" -eq 10 ]
}

fifo_does_not_block() { # MODE: nobody reads it
    mkfifo "$WORK/fifo"
    one_note "$1" "$WORK/fifo"
}

closed_pipe_does_not_kill() { # MODE: the reader of stderr is gone
    local status
    { sleep 0.3; in_mode "$1" "$PROFILE" "$MARK" many 2 50 >"$WORK/out"; echo $? >"$WORK/status"; } 2>&1 | true
    status=$(cat "$WORK/status")
    echo "status $status, stdout $(cat "$WORK/out")"
    [ "$status" -eq 0 ] && [ "$(cat "$WORK/out")" = "done" ]
}

file_size_limit_does_not_kill() { # MODE
    (
        ulimit -f 4
        in_mode "$1" "$PROFILE" FLARENA_MARKER_FILE="$WORK/json" "$MARK" many 2 50 2>/dev/null
    )
}

without_proc() { # MODE
    unshare --mount true 2>/dev/null || { echo "may not unshare"; exit 77; }
    # The one shell that unmounts is bare, and env has no business with /proc.
    # shellcheck disable=SC2016 # the inner shell expands them
    without_preload unshare --mount sh -c 'umount -l /proc && exec "$@"' sh \
        env LD_PRELOAD="$LIB" NVFLARE_ENABLE_JEMALLOC_PRELOAD="$(is_jemalloc "$1")" "$PROFILE" FLARENA_MARKER_FILE="$WORK/json" \
        "$MARK" one send site-1 1 >"$WORK/out" 2>"$WORK/err"
    cat "$WORK/err"
    [ "$(cat "$WORK/out")" = "done" ]
    validate json "$WORK/json" send=1
}

check_files() { # MODE
    check_mode "$1" "the file belongs to its owner alone, whatever the umask" file_mode
    check_mode "$1" "a missing directory is told once" one_note "$SCRATCH/missing/file"
    check_mode "$1" "a directory in place of the file is told once" one_note /tmp
    check_mode "$1" "a full disk is told once" one_note /dev/full
    check_mode "$1" "a symbolic link is refused, told once, and its target untouched" symlink_is_refused
    check_mode "$1" "a file that may not be written is told once" as_nobody
    check_mode "$1" "a pipe that nobody reads is told once and blocks nothing" fifo_does_not_block
    check_mode "$1" "a stderr that nobody reads kills nothing" closed_pipe_does_not_kill
    check_mode "$1" "a limit on file sizes kills nothing" file_size_limit_does_not_kill
    check_mode "$1" "without /proc markers go on" without_proc
}
