# shellcheck shell=bash disable=SC2154  # part of run.sh
# Part of run.sh: markers that cannot be written, or that no process reads. The program must continue.

file_mode() { # MODE
    (
        umask 0
        in_mode "$1" "$PROFILE" FLARENA_MARKER_FILE="$WORK/json" "$MARK" one a b 1 >/dev/null 2>&1
    )
    stat -c %a "$WORK/json"
    [ "$(stat -c %a "$WORK/json")" = 600 ]
}

# The program continues, its markers go to stderr, and exactly one line reports the problem.
reported_once() { # MODE FILE [COMMAND PREFIX...]
    local mode=$1 file=$2
    shift 2
    in_mode "$mode" "$PROFILE" FLARENA_MARKER_FILE="$file" "$@" "$MARK" many 4 50 >"$WORK/out" 2>"$WORK/err"
    grep -v '^\[RSS\]' "$WORK/err" | head -n 5
    [ "$(cat "$WORK/out")" = "done" ]
    [ "$(grep -c 'send:' "$WORK/err")" -eq 200 ]
    [ "$(grep -vc '^\[RSS\]' "$WORK/err")" -eq 1 ]
    grep -v '^\[RSS\]' "$WORK/err" | grep -F "$file"
}

symlink_is_refused() { # MODE
    echo precious >"$WORK/target"
    ln -s "$WORK/target" "$WORK/link"
    reported_once "$1" "$WORK/link"
    [ "$(cat "$WORK/target")" = precious ]
}

planted_file() { # MODE: another user's file in a sticky folder that all users can write
    [ "$(id -u)" -eq 0 ] || { echo "needs root"; exit 77; }
    mkdir "$WORK/sticky"
    chmod 1777 "$WORK/sticky"
    for owner in 65534 65533; do # another user, and the owner of the folder, who is trusted
        : >"$WORK/sticky/$owner"
        chmod 666 "$WORK/sticky/$owner"
        chown "$owner" "$WORK/sticky/$owner"
    done
    chown 65533 "$WORK/sticky"
    reported_once "$1" "$WORK/sticky/65534" | tee "$WORK/said"
    grep -qE 'another user|Permission denied' "$WORK/said"
    [ ! -s "$WORK/sticky/65534" ]
    in_mode "$1" "$PROFILE" FLARENA_MARKER_FILE="$WORK/sticky/65533" "$MARK" one a b 1 2>/dev/null
    [ -s "$WORK/sticky/65533" ]
}

fifo_does_not_block() { # MODE: the pipe has no reader
    mkfifo "$WORK/fifo"
    reported_once "$1" "$WORK/fifo"
}

closed_pipe_does_not_kill() { # MODE: the reader of stderr has ended
    local status
    { sleep 0.3; in_mode "$1" "$PROFILE" "$MARK" many 2 50 >"$WORK/out"; echo $? >"$WORK/status"; } 2>&1 | true
    status=$(cat "$WORK/status")
    echo "status $status, stdout $(cat "$WORK/out")"
    [ "$status" -eq 0 ] && [ "$(cat "$WORK/out")" = "done" ]
}

file_that_can_be_written_later() { # MODE: the folder is missing at the first markers
    marked "$1" FLARENA_SITES=on FLARENA_LOG=off FLARENA_MARKER_FILE="$WORK/later/json" '
held = b"x" * (4 << 20)
mark("lost")
os.mkdir(sys.argv[1])
mark("written")
mark("again")' "$WORK/later"
    cat "$WORK/later/json"
    records_satisfy "$WORK/later/json" '
markers = [record for record in records if "stage" in record]
assert [marker["stage"] for marker in markers] == ["written", "again", "exit"], markers
for field in ("host", "host_memory_bytes", "version", "settings"):
    assert [marker[field] is not None for marker in markers] == [True, False, False], field
stacks = [record["site"] for record in records if record.get("kind") == "stack"]
held = {one["site"] for record in records if record.get("kind") == "sites" for one in record["sites"]}
assert held and sorted(stacks) == sorted(held), (stacks, held)'
}

without_proc() { # MODE
    mark_with_mounts "$1" 'umount -l /proc'
    cat "$WORK/err"
    [ "$(cat "$WORK/out")" = "done" ]
    validate json "$WORK/json" send=1
}

check_files() { # MODE
    check_mode "$1" "the marker file has mode 600 under umask 0" file_mode
    check_mode "$1" "a missing directory is reported once" reported_once "$SCRATCH/missing/file"
    check_mode "$1" "a directory instead of a file is reported once" reported_once /tmp
    check_mode "$1" "a full disk is reported once" reported_once /dev/full
    check_mode "$1" "a symbolic link is refused and reported once, and its target stays unchanged" symlink_is_refused
    check_mode "$1" "another user's file in a sticky folder is not written, and reported once" planted_file
    check_mode "$1" "a pipe without a reader is reported once and does not block" fifo_does_not_block
    check_mode "$1" "markers to a stderr without a reader do not end the program" closed_pipe_does_not_kill
    check_mode "$1" "the first marker that can be written has the machine, the settings and the stacks of its sites" file_that_can_be_written_later
    check_mode "$1" "without /proc markers are written" without_proc
}
