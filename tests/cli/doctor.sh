# shellcheck shell=bash
# flarena doctor: findings and remedies. Sourced by run.sh.

examine() { # ARGUMENT...: prints the JSON; exit status 1, for problems, is accepted
    flarena doctor --json "$@" || [ $? -eq 1 ]
}

fields() { # ID FORMAT: prints the fields of each finding with this id in the JSON on stdin
    python3 -c 'import json, sys
print(*[sys.argv[2].format(**f) for f in json.load(sys.stdin)["findings"] if f["id"] == sys.argv[1]])' "$@"
}

finds() { # LEVEL ID ARGUMENT...: flarena doctor --json ARGUMENT... has this finding
    examine "${@:3}" | fields "$2" '{level}' | tee /dev/stderr | grep -qw "$1"
}

finds_not() { # ID ARGUMENT...
    [ -z "$(examine "${@:2}" | fields "$1" '{level}: {fact}' | tee /dev/stderr)" ]
}

fact() { # ID: prints level and fact of this finding about $PID
    examine "$PID" | fields "$1" '{level}: {fact}'
}

#----- this machine
check "the doctor finds that the library loads here" finds ok loadable
check "without the library the doctor exits with 1" exits_with 1 \
    without_preload FLARENA_LIB=/nowhere "$FLARENA" doctor
check "a preload that does not exist is an error" says "does not exist" \
    env LD_PRELOAD=/nowhere/x.so "$FLARENA" doctor

# in_terminal COLUMNS COMMAND...: prints the output in a terminal of this width. A pipe is not wrapped.
in_terminal() {
    local columns=$1
    shift
    SHELL=$BASH script -qec "stty rows 24 columns $columns; exec ${*@Q}" /dev/null </dev/null | sed 's/\r$//'
}
no_long_line() { # COMMAND...: prints no line over 80 columns in a terminal
    in_terminal 80 env FLARENA_LIB="$LIB" "$@" >"$SCRATCH/page" || true
    cat "$SCRATCH/page"
    [ -s "$SCRATCH/page" ] && ! grep -E '^.{81}' "$SCRATCH/page"
}
for line in --help "run --help-all" "doctor" "doctor --all" "doctor --all -- sh" "top --sort x" "completions tcsh"; do
    # shellcheck disable=SC2086  # words of a command line
    check "at 80 columns no line is too long: flarena $line" no_long_line "$FLARENA" $line
done

on_tmpfs() { # FOLDER: whether it is found to be in memory
    [ "$(stat -f -c %T /dev/shm)" = tmpfs ] || { echo "/dev/shm is not a tmpfs here" && exit 77; }
    { env TMPDIR="$1" FLARENA_LIB="$LIB" "$FLARENA" doctor --json || true; } | fields tmpfs '{level}'
}
check_output "a TMPDIR in memory is a note" note on_tmpfs /dev/shm
check_output "a TMPDIR on a disk has no finding" "" on_tmpfs "$ROOT"

#----- a command, without running it
runs_nothing() {
    printf '#!/bin/sh\ntouch "%s"\n' "$SCRATCH/was-run" >"$SCRATCH/script"
    chmod +x "$SCRATCH/script"
    says "would get its malloc from $LIB" flarena doctor -- "$SCRATCH/script" && [ ! -e "$SCRATCH/was-run" ]
}
check "the doctor examines the interpreter of a command and does not run it" runs_nothing
check "a missing command is an error" finds error program -- no-such-command-here

#----- a live process
compile holder
allocator_is_read_back() { # MODE
    start in_mode "$1" "$SCRATCH/holder" live 80
    [ "$(fact library)" = "ok: $LIB is loaded" ]
    fact owner | grep "^ok: $LIB serves malloc"
    eventually finds ok allocator "$PID"
    fact allocator | grep "$1 is active"
}
for mode in glibc jemalloc; do
    check "$mode: the doctor proves that the library serves malloc, and reads its options" allocator_is_read_back "$mode"
done
with_process() { # CHECK... -- COMMAND...: starts the command, then runs the check with its PID
    local BEFORE AFTER
    split_at_dashes "$@"
    start "${AFTER[@]}"
    "${BEFORE[@]}" "$PID"
}
check "a process without the library is examined, too" \
    with_process finds note library -- without_preload "$SCRATCH/holder" live 1
check "a preload that did not load is an error" \
    with_process finds error library -- env LD_PRELOAD=/nowhere/libflarena.so "$SCRATCH/holder" live 1
if [ -n "$jemalloc" ]; then
    check_output "after another allocator in LD_PRELOAD the library is inactive, and the program runs" "runs" \
        env LD_PRELOAD="$jemalloc:$LIB" sh -c 'echo runs'
    check "another allocator first in LD_PRELOAD is an error" \
        with_process finds error owner -- env LD_PRELOAD="$jemalloc:$LIB" "$SCRATCH/holder" live 1
    check "a plain jemalloc without decay is a warning" \
        with_process finds warning no-decay -- env LD_PRELOAD="$jemalloc" "$SCRATCH/holder" live 1
fi
gcc -shared -fPIC -fno-builtin ../c/lib/allocates_in_ctor.c -o "$SCRATCH/deeplib.so"
gcc -shared -fPIC -fno-builtin ../c/lib/{allocates_in_ctor,own_malloc}.c -o "$SCRATCH/deepmalloc.so"
loads_deep='import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_DEEPBIND)
print("ready", flush=True)
sys.stdin.read()'
check "a library loaded with RTLD_DEEPBIND that contains a malloc is a note" \
    with_process finds note deepbind -- in_mode glibc python3 -c "$loads_deep" "$SCRATCH/deepmalloc.so"
check "a library loaded with RTLD_DEEPBIND that calls malloc gets it from flarena" \
    with_process finds_not deepbind -- in_mode glibc python3 -c "$loads_deep" "$SCRATCH/deeplib.so"
names_a_jemalloc() { # in a library
    echo 'int tool_mallctl(void) { return 0; }' | gcc -shared -fPIC -x c - -o "$SCRATCH/libtool.so"
    start in_mode glibc LD_PRELOAD="$LIB:$SCRATCH/libtool.so" "$SCRATCH/holder" live 1
    fact library-jemalloc | grep "libtool.so contains a jemalloc (tool_mallctl)"
}
check "the doctor names a jemalloc in a library" names_a_jemalloc
keeps_secrets() {
    start env NVFLARE_TOKEN=hush-hush LD_PRELOAD="$LIB" "$SCRATCH/holder" live 1 hush-hush
    # The exit status depends on the findings and is ignored.
    { flarena doctor --all "$PID"; flarena doctor --json "$PID"; } >"$SCRATCH/page" 2>&1 || true
    grep -q findings "$SCRATCH/page"
    ! grep hush "$SCRATCH/page"
}
check "the doctor prints neither arguments nor other variables" keeps_secrets

#----- jobs without the library
client=$SCRATCH/fake/nvflare/private/fed/app/client
mkdir -p "$client"
printf '%s\n' 'import os, subprocess, sys' 'print("parent", os.getpid(), flush=True)' \
    'uid, option, workspace, *launcher = sys.argv[1:]' \
    'job = [sys.executable, "-m", "nvflare.private.fed.app.client.worker_process", option, workspace, "-c", uid[4:]]' \
    'launcher != ["none"] and subprocess.run([*launcher, *job])' \
    'sys.stdin.read()' >"$client/client_train.py"
printf '%s\n' 'import os, sys' 'print("job", os.getpid(), "ready", flush=True)' 'sys.stdin.read()' >"$client/worker_process.py"
mkdir -p "$SCRATCH/site/startup" "$SCRATCH/other/startup"
site=site-of-test-$$
of_job() { # TEXT PREFIX...: what the doctor says of a job that a client has launched with this prefix, and of the client
    local parent job
    start in_mode glibc PYTHONPATH="$SCRATCH/fake" python3 -m nvflare.private.fed.app.client.client_train "uid=$site" -m "$SCRATCH/site" "${@:2}"
    parent=$(sed -n 's/^parent //p' "$SCRATCH/said")
    job=$(sed -n 's/^job \(.*\) ready/\1/p' "$SCRATCH/said")
    { flarena doctor "$job"; flarena doctor "$parent"; } >"$SCRATCH/both" || true
    stop
    cat "$SCRATCH/both"
    if [ -z "$1" ]; then
        [ "$(grep -c 'no problem found' "$SCRATCH/both")" -eq 2 ]
        return
    fi
    [ "$(grep -cF -e "-> $1" "$SCRATCH/both")" -eq 2 ]
    grep -q "warning  libflarena.so is not loaded, but process $parent, which launched this job, has it" "$SCRATCH/both"
    grep -q "warning  this process has launched job process $job without libflarena.so" "$SCRATCH/both"
}
check "a job that a script has started with another environment is found, with the remedy" \
    of_job "let the program between the two (sudo, env -i, a script) keep LD_PRELOAD" env -u LD_PRELOAD
check "a job with the library is no problem" of_job "" env
# The scheduler of a cluster starts the job, which has other ancestors. This shell ends, and the job goes on.
# shellcheck disable=SC2016  # the shell expands them
elsewhere=(env -u LD_PRELOAD sh -c 'exec 8<&0; "$@" <&8 &' _ env)
beside_another_federation() { # TEXT PREFIX...: a client of the same name, without the library, is there first
    local other
    mkfifo "$SCRATCH/other-input"
    without_preload PYTHONPATH="$SCRATCH/fake" python3 -m nvflare.private.fed.app.client.client_train "uid=$site" -m "$SCRATCH/other" none \
        <"$SCRATCH/other-input" >"$SCRATCH/other-said" 2>&1 &
    other=$!
    exec 6>"$SCRATCH/other-input"
    eventually grep -q parent "$SCRATCH/other-said"
    of_job "$@"
    exec 6>&-
    wait "$other"
}
check "of two clients with the name of the site, the one with the job's workspace has launched it" \
    beside_another_federation "export LD_PRELOAD and the settings in slurm.yaml" "${elsewhere[@]}" NVFLARE_SLURM_CHILD_PROCESS=1

#----- NVFlare's advice for memory
server=$SCRATCH/fake/nvflare/private/fed/app/server
mkdir -p "$server" "$SCRATCH/kit/startup" "$SCRATCH/kit/job-1/app_server/config"
cp "$client/worker_process.py" "$server/runner_process.py"
never_cleans_up() { # a server's job whose workflow has no argument for cleanups
    echo '{"workflows": [{"path": "nvflare.workflows.FedAvg", "args": {}}]}' >"$SCRATCH/kit/job-1/app_server/config/config_fed_server.json"
    start in_mode glibc PYTHONPATH="$SCRATCH/fake" \
        env -C "$SCRATCH" python3 -m nvflare.private.fed.app.server.runner_process -m kit -n job-1 -c "$site"
    examine "$PID" | fields job-cleanup "{level}: {remedy}"
}
check_output "a server's job without cleanups is advised 1 round, then 2, then 5, by the argument of its workflow" \
    "note: set it to 1 in the job's config_fed_server.json (some recipes have server_memory_gc_rounds for it); if the peak stays flat, try 2, then 5" \
    never_cleans_up
under_systemd() { # OPTION-OF-THE-SCRIPT OPTION...: the remedy about the start of a kit by systemd
    printf '%s\n' "case \$1 in $1) ;; esac" "python3 -m nvflare.private.fed.app.client.client_train uid=$site -m $SCRATCH/site" 'echo ended' \
        >"$SCRATCH/kit/startup/sub_start.sh"
    # shellcheck disable=SC2016  # the inner shell expands it
    start in_mode glibc PYTHONPATH="$SCRATCH/fake" sh -c 'export SYSTEMD_EXEC_PID=$$; exec bash "$@"' sh \
        "$SCRATCH/kit/startup/sub_start.sh" "${@:2}"
    examine "$(sed -n 's/^parent //p' "$SCRATCH/said")" | fields kit-foreground '{remedy}'
}
check_output "a kit that systemd starts without --foreground is advised to have it" \
    "start it with flarena's sub_start.sh KIT/startup --foreground" under_systemd --foreground
check_output "a kit before NVFlare 2.9.1 is advised --once instead" "start it with flarena's sub_start.sh KIT/startup --once" under_systemd --once
check_output "a kit that was started with --foreground has no advice" "" under_systemd --foreground --foreground

#----- unreadable processes
ended() {
    true &
    wait $!
    exits_with 3 flarena doctor $! && says "no process $!" flarena doctor $!
}
check "a process that has ended is reported, with exit status 3" ended
refused() {
    start "$SCRATCH/holder" live 1
    exits_with 3 as_nobody "$OPEN_FLARENA" doctor "$PID"
    has_lines "no permission to read process $PID"
}
check_as_nobody "another user's process is reported as unreadable, with exit status 3" refused
