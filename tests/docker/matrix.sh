# shellcheck shell=bash disable=SC2154  # part of run.sh
# Tests for each version of glibc.

markers_of() { # SUITE MODE-OPTION...: prints the stages of the file, then the marker on stderr without its number
    local suite=$1
    shift
    inside "$suite-flarena" "${MARKERS[@]}" "$@" -e FLARENA_MARKER_FILE=/tmp/rss.jsonl -- sh -c '
        python3 -c "import flarena; flarena.trim(); flarena.mark(\"send\", \"site-1\", 3)" 2>/tmp/text
        unset NVFLARE_CLIENT_MEMORY_PROFILE
        python3 -c "import json; print(*(json.loads(line)[\"stage\"] for line in open(\"/tmp/rss.jsonl\")))"
        grep -o " s=site-1 r=3 send: [0-9.]* MB" /tmp/text | sed "s/[0-9.]* MB/N MB/"'
}

without_proc() { # SUITE: /proc is not mounted
    inside "$1-flarena" "${MAY_MOUNT[@]}" -- sh -c 'umount -l /proc && exec python3 /t/large.py'
}
without_psi() { # SUITE: no pressure files, as on kernels booted with psi=0
    inside "$1-flarena" "${MAY_MOUNT[@]}" -- sh -c 'mount -t tmpfs none /proc/pressure && exec python3 /t/large.py'
}
seccomp() { # SUITE
    inside "$1-flarena" -- sh -c 'grep ^Seccomp: /proc/self/status && exec python3 /t/large.py'
}
# No file can be written. The program runs, and one line reports the marker file.
read_only() { # SUITE
    inside "$1-flarena" --read-only "${MARKERS[@]}" -e FLARENA_MARKER_FILE=/rss.jsonl -- python3 /t/large.py 2>&1 |
        sed '/^\[RSS\]/d; s/^flarena: .*\/rss\.jsonl.*/one line/'
}
pid_one() { # SUITE [--init]: whether the program is process 1; its exit status is the container's
    local status=0
    inside "$1-flarena" "${@:2}" -- python3 -c '
import os, sys
sys.path.insert(0, "/t")
import large
print(os.getpid() == 1)
sys.exit(7)' || status=$?
    [ $status -eq 7 ]
}

# The program links libc alone. Before glibc 2.34 the loader's functions are in libdl, which the library loads.
loader_of() { # SUITE [DOCKER-OPTION...]
    inside "$1-flarena" -v "$SCRATCH/loader:/loader:ro" "${@:2}" -- /loader/program
}

test_suite() { # SUITE
    local on=$1 mode libdl="is not loaded"
    [ "$on" != bullseye ] || libdl="is loaded"
    check "$on: docker/Dockerfile builds" make_suite "$on"
    docker image inspect "flarena-test:$on-flarena" >/dev/null 2>&1 || return
    check_output "$on: in glibc mode the library serves malloc" "glibc True False" \
        inside "$on-flarena" -- python3 /t/facts.py allocator owner mallctl
    check_output "$on: in jemalloc mode the library serves malloc" "jemalloc True True 5000 5000" \
        inside "$on-flarena" "${JEMALLOC[@]}" -- python3 /t/facts.py allocator owner mallctl \
        backend.dirty_decay_ms backend.muzzy_decay_ms
    for mode in glibc jemalloc; do
        check_output "$on: in $mode mode a trim gives freed memory back" "1 returned" \
            inside "$on-flarena" -e FLARENA_ALLOCATOR=$mode -- python3 /t/trim.py
        check_output "$on: in $mode mode markers go to file and stderr" $'load before_trim after_trim send exit\n s=site-1 r=3 send: N MB' \
            markers_of "$on" -e FLARENA_ALLOCATOR=$mode
        check_output "$on: in $mode mode a program of libc alone keeps its fork handlers" \
            "preloaded, libdl $libdl, its fork handlers ran" loader_of "$on" -e FLARENA_ALLOCATOR=$mode
    done
    check_output "$on: sub_start.sh and the command start a server with 4 arenas and jemalloc" "jemalloc server 4" \
        inside "$on-flarena" "${JEMALLOC[@]}" -e FLARENA_ROLE=server -e FLARENA_LOG=off -- /opt/flarena/sub_start.sh -- \
        python3 /t/facts.py allocator role settings.MALLOC_ARENA_MAX
    check_output "$on: a program runs without /proc" "large blocks came and went" without_proc "$on"
}

# What the kernel and the container decide is the same with each version of glibc.
test_container() {
    check_output "a user without privileges can run the library" "large blocks came and went" \
        inside bookworm-flarena --user 65534:65534 -- python3 /t/large.py
    check_output "on a read-only root filesystem one line is printed and the program runs" $'one line\nlarge blocks came and went' read_only bookworm
    check_output "the library serves process 1" $'large blocks came and went\nTrue' pid_one bookworm
    check_output "the library serves a program under --init" $'large blocks came and went\nFalse' pid_one bookworm --init
    check_output "a program runs without pressure files" "large blocks came and went" without_psi bookworm
    check_output "a program runs under Docker's seccomp profile" $'Seccomp:\t2\nlarge blocks came and went' seccomp bookworm
}

# Linked for the oldest glibc of the images.
mkdir -p "$SCRATCH/loader"
"$ROOT/build/venv-release/bin/python-zig" cc -target "$(uname -m)-linux-gnu.2.17" -o "$SCRATCH/loader/program" programs/loader.c
# Two at a time. The test of each suite reports a failure.
printf '%s\n' "${SUITES[@]}" | xargs -P 2 -I '{}' "$ROOT/scripts/docker/base-image.sh" '{}' >"$SCRATCH/bases.log" 2>&1
for suite in "${SUITES[@]}"; do
    test_suite "$suite"
done
if docker image inspect flarena-test:bookworm-flarena >/dev/null 2>&1; then
    test_container
else
    skip "in a container the library serves process 1, other users and restricted processes" "there is no image of bookworm"
fi
