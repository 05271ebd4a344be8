# shellcheck shell=bash disable=SC2154  # part of run.sh
# Tests for each version of glibc.

# A kit like NVFlare's: the same module names, and an export of 4 arenas.
mock_site() { # client|server
    local kit=$SCRATCH/kits/$1/startup module=$SCRATCH/kits/python/nvflare/private/fed/app/$1
    mkdir -p "$kit" "$module"
    echo '{}' >"$kit/fed_$1.json"
    cat >"$kit/sub_start.sh" <<END
#!/usr/bin/env bash
export MALLOC_ARENA_MAX=\${MALLOC_ARENA_MAX:-4} PYTHONPATH=/kits/python
exec python3 -m nvflare.private.fed.app.$1.$1_train -m /kits/$1 -s fed_$1.json uid=site-1 "\$@"
END
    chmod +x "$kit/sub_start.sh"
    cat >"$module/$1_train.py" <<'END'
import runpy, sys
sys.argv[1:] = ["allocator", "role", "proc", "settings.MALLOC_ARENA_MAX"]
runpy.run_path("/t/facts.py")
END
}
KIT_MOUNT=(-v "$SCRATCH/kits:/kits:ro")
start_site() { # SUITE client|server [DOCKER-OPTION...]
    local suite=$1 site=$2
    shift 2
    inside "$suite-flarena" "${KIT_MOUNT[@]}" "$@" -- /opt/flarena/sub_start.sh "/kits/$site/startup" --once 2>&1 |
        sed '/^flarena: preloading /d'
}

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
musl_program() { # SUITE
    # One stream: Docker sends stdout and stderr in any order.
    inside "$1-flarena" -v "$SCRATCH/musl:/musl:ro" -- sh -c '/opt/flarena/sub_start.sh -- /musl/hello 2>&1'
}
# No file can be written. The program runs, and one line reports the marker file.
read_only() { # SUITE
    inside "$1-flarena" --read-only "${MARKERS[@]}" -e FLARENA_MARKER_FILE=/rss.jsonl -- python3 /t/large.py 2>&1 |
        sed '/^\[RSS\]/d; s/^flarena: .*\/rss\.jsonl.*/one line/'
}
pid_one() { # SUITE [--init]: whether the program is process 1; its exit status is the container's
    local status=0
    inside "$1-flarena" "${@:2}" -- python3 -c '
import os, runpy, sys
runpy.run_path("/t/large.py")
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
    done
    for mode in glibc jemalloc; do
        check_output "$on: in $mode mode a program of libc alone keeps its fork handlers" \
            "preloaded, libdl $libdl, its fork handlers ran" loader_of "$on" -e FLARENA_ALLOCATOR=$mode
    done
    check_output "$on: sub_start.sh starts a client with 2 arenas" "glibc client CP 2" start_site "$on" client
    check_output "$on: sub_start.sh starts a server with 4 arenas and jemalloc" "jemalloc server SP 4" \
        start_site "$on" server "${JEMALLOC[@]}"
    check_output "$on: a user without privileges can run it" "large blocks came and went" \
        inside "$on-flarena" --user 65534:65534 -- python3 /t/large.py
    check_output "$on: on a read-only root filesystem one line is printed and the program runs" $'one line\nlarge blocks came and went' read_only "$on"
    check_output "$on: it serves process 1" $'large blocks came and went\nTrue' pid_one "$on"
    check_output "$on: it serves a program under --init" $'large blocks came and went\nFalse' pid_one "$on" --init
    check_output "$on: a program runs without /proc" "large blocks came and went" without_proc "$on"
    check_output "$on: a program runs without pressure files" "large blocks came and went" without_psi "$on"
    check_output "$on: a program runs under Docker's seccomp profile" $'Seccomp:\t2\nlarge blocks came and went' seccomp "$on"
    check_output "$on: a musl program starts without the library" \
        $'flarena: /musl/hello uses musl, not glibc; starting without flarena\nhello from musl' musl_program "$on"
}

mock_site client
mock_site server
mkdir -p "$SCRATCH/musl"
need musl-gcc musl-tools && musl-gcc -o "$SCRATCH/musl/hello" programs/musl.c
# Linked for the oldest glibc of the images.
mkdir -p "$SCRATCH/loader"
"$ROOT/build/venv-release/bin/python-zig" cc -target "$(uname -m)-linux-gnu.2.17" -o "$SCRATCH/loader/program" programs/loader.c
# Two at a time. The test of each suite reports a failure.
printf '%s\n' "${SUITES[@]}" | xargs -P 2 -I '{}' "$ROOT/scripts/docker/base-image.sh" '{}' >"$SCRATCH/bases.log" 2>&1
for suite in "${SUITES[@]}"; do
    test_suite "$suite"
done
