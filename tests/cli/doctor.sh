# shellcheck shell=bash
# flarena doctor: findings and remedies. Sourced by run.sh.
# shellcheck source=tests/cli/processes.sh
. ./processes.sh

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
in_terminal() { python3 terminal.py "$@"; }
one_machine_note() {
    [ "$(flarena doctor --all | grep -c huge-pages.md)" -le 1 ]
    ! flarena doctor --all -- ls | grep huge
}
check "the doctor names the document of huge pages once, and not for a command" one_machine_note
no_long_line() { # COMMAND...: prints no line over 80 columns in a terminal
    in_terminal 80 env FLARENA_LIB="$LIB" "$@" >"$SCRATCH/page" || true
    cat "$SCRATCH/page"
    [ -s "$SCRATCH/page" ] && ! grep -E '^.{81}' "$SCRATCH/page"
}
for line in --help "run --help" "run --help-all" "compare --help" "report --help" "top --help" "doctor" "doctor --all" "doctor --all -- sh" \
    "top --sort x" "completions tcsh"; do
    # shellcheck disable=SC2086  # words of a command line
    check "at 80 columns no line is too long: flarena $line" no_long_line "$FLARENA" $line
done

on_tmpfs() { # TMPDIR=FOLDER LEVEL ARGUMENT...
    local folder=$1 level=$2
    shift 2
    [ "$(stat -f -c %T /dev/shm)" = tmpfs ] || { echo "/dev/shm is not a tmpfs here" && exit 77; }
    env TMPDIR="$folder" FLARENA_LIB="$LIB" "$FLARENA" doctor --json "$@" >"$SCRATCH/found" || [ $? -eq 1 ]
    [ "$(fields tmpfs '{level}' <"$SCRATCH/found" | tee /dev/stderr)" = "$level" ]
}
check "a TMPDIR in memory is a note" on_tmpfs /dev/shm note
check "a TMPDIR in memory is a warning for NVFlare, which offloads tensors there" \
    on_tmpfs /dev/shm warning -- python3 -m nvflare.private.fed.app.server.server_train
check "a TMPDIR on a disk has no finding" on_tmpfs "$ROOT" "" -- python3 -m nvflare.private.fed.app.server.server_train

#----- a command, without running it
runs_nothing() {
    printf '#!/bin/sh\ntouch "%s"\n' "$SCRATCH/was-run" >"$SCRATCH/script"
    chmod +x "$SCRATCH/script"
    says "would get its malloc from $LIB" flarena doctor -- "$SCRATCH/script" && [ ! -e "$SCRATCH/was-run" ]
}
check "the doctor examines the interpreter of a command and does not run it" runs_nothing
check "a missing command is an error" finds error program -- no-such-command-here
isolated() { NVFLARE_CLIENT_MEMORY_PROFILE=1 says "-I or -E ignores PYTHONPATH" env FLARENA_LIB="$LIB" "$FLARENA" doctor -- python3 -I x.py; }
check "python -I has a finding about the hooks" isolated
inactive_gc() { # [NAME=VALUE...]: prints the level of the finding about FLARENA_GC without the recycler
    { env FLARENA_LIB="$LIB" "$@" "$FLARENA" doctor --json -- python3 x.py || true; } | fields uncounted-garbage '{level}'
}
check_output "for Python without the recycler, a note says that FLARENA_GC has no effect" note inactive_gc FLARENA_RECYCLE=off
check_output "with FLARENA_GC=off there is no such note" "" inactive_gc FLARENA_RECYCLE=off FLARENA_GC=off
printf 'int main(void) { return 0; }\n' >"$SCRATCH/static.c"
if gcc -static "$SCRATCH/static.c" -o "$SCRATCH/static" 2>/dev/null; then
    check "a static program is a warning" finds warning program -- "$SCRATCH/static"
fi

#----- a live process
compile holder
allocator_is_read_back() { # MODE
    start in_mode "$1" "$SCRATCH/holder" live 80
    fact owner
    [ "$(fact library)" = "ok: $LIB is loaded" ] &&
        fact owner | grep -q "^ok: $LIB serves malloc" &&
        eventually finds ok allocator "$PID" &&
        fact allocator | grep "$1 is active"
    local status=$?
    stop
    return $status
}
for mode in glibc jemalloc; do
    check "$mode: the doctor proves that the library serves malloc, and reads its options" allocator_is_read_back "$mode"
done
with_process() { # CHECK... -- COMMAND...: starts the command, then runs the check with its PID
    local BEFORE AFTER
    split_at_dashes "$@"
    start "${AFTER[@]}" || return
    "${BEFORE[@]}" "$PID"
    local status=$?
    stop
    return $status
}
check "a process without the library is examined, too" \
    with_process finds note library -- without_preload "$SCRATCH/holder" live 1
check "a preload that did not load is an error" \
    with_process finds error library -- env LD_PRELOAD=/nowhere/libflarena.so "$SCRATCH/holder" live 1
check "a bad setting of a live process is a warning" \
    with_process finds warning bad-setting -- in_mode glibc FLARENA_LOG=off FLARENA_DECAY_MS=soon "$SCRATCH/holder" live 1
if [ -n "$jemalloc" ]; then
    check_output "after another allocator in LD_PRELOAD the library is inactive, and the program runs" "runs" \
        env LD_PRELOAD="$jemalloc:$LIB" sh -c 'echo runs'
    check "another allocator first in LD_PRELOAD is an error" \
        with_process finds error owner -- env LD_PRELOAD="$jemalloc:$LIB" "$SCRATCH/holder" live 1
    check "a plain jemalloc without decay is a warning" \
        with_process finds warning no-decay -- env LD_PRELOAD="$jemalloc" "$SCRATCH/holder" live 1
fi
pastes_options() {
    start env LD_PRELOAD="$jemalloc" "$SCRATCH/holder" live 1
    in_terminal 40 "$FLARENA" doctor "$PID" >"$SCRATCH/page"
    stop
    cat "$SCRATCH/page"
    grep -qx '    export MALLOC_CONF=dirty_decay_ms:[0-9]*,muzzy_decay_ms:[0-9]*' "$SCRATCH/page"
    ! grep -vE '^ {4}(export|sysctl|echo|w) ' "$SCRATCH/page" | grep -v "$jemalloc" | grep -E '.{41}'
}
[ -z "$jemalloc" ] || check "at 40 columns text wraps, and a line to paste does not" pastes_options
names_the_file() {
    head -c 40M /dev/urandom >"$SCRATCH/model.bin"
    start without_preload "$SCRATCH/holder" file 40 "$SCRATCH/model.bin"
    fact file-maps | grep "40.0 MB of $SCRATCH/model.bin"
    local status=$?
    stop
    rm "$SCRATCH/model.bin"
    return $status
}
check "pages of mapped files are reported with their size and the largest file" names_the_file
compile deep -ldl
gcc -shared -fPIC -fno-builtin deeplib.c -o "$SCRATCH/deeplib.so"
gcc -shared -fPIC -fno-builtin deeplib.c ../c/lib/own_malloc.c -o "$SCRATCH/deepmalloc.so"
check "a library loaded with RTLD_DEEPBIND that contains a malloc is a note" \
    with_process finds note deepbind -- in_mode glibc "$SCRATCH/deep" "$SCRATCH/deepmalloc.so"
check "a library loaded with RTLD_DEEPBIND that calls malloc gets it from flarena" \
    with_process finds_not deepbind -- in_mode glibc "$SCRATCH/deep" "$SCRATCH/deeplib.so"
other_pools() { # libraries with these names
    echo 'int tool_mallctl(void) { return 0; }' | gcc -shared -fPIC -x c - -o "$SCRATCH/libtool.so"
    for name in libjvm.so libonnxruntime.so.1; do
        echo 'int nothing;' | gcc -shared -fPIC -x c - -o "$SCRATCH/$name"
    done
    start in_mode glibc LD_PRELOAD="$LIB:$SCRATCH/libtool.so:$SCRATCH/libjvm.so:$SCRATCH/libonnxruntime.so.1" \
        "$SCRATCH/holder" live 1 || return
    { fact library-jemalloc; fact onnx-arena; fact java; } >"$SCRATCH/facts"
    stop
    cat "$SCRATCH/facts"
    [ "$(wc -l <"$SCRATCH/facts")" -eq 3 ] && grep -q "libtool.so contains a jemalloc (tool_mallctl)" "$SCRATCH/facts"
}
check "the doctor names a jemalloc in a library, ONNX Runtime's arena, and a JVM" other_pools
keeps_secrets() {
    start env NVFLARE_TOKEN=hush-hush LD_PRELOAD="$LIB" "$SCRATCH/holder" live 1 hush-hush
    # The exit status depends on the findings and is ignored.
    { flarena doctor --all "$PID"; flarena doctor --json "$PID"; } >"$SCRATCH/page" 2>&1 || true
    local status=0
    grep -q findings "$SCRATCH/page" || status=1
    if grep hush "$SCRATCH/page"; then status=1; fi
    stop
    return $status
}
check "the doctor prints neither arguments nor other variables" keeps_secrets

few_lines() { # a process with flarena: the answers fit ten lines, and the summary counts the rest
    start in_mode glibc "$SCRATCH/holder" live 80
    eventually finds ok allocator "$PID"
    flarena doctor "$PID" >"$SCRATCH/page" || true
    flarena doctor --all "$PID" >"$SCRATCH/all" || true
    stop
    cat "$SCRATCH/page"
    [ "$(wc -l <"$SCRATCH/page")" -le 10 ] && [ "$(wc -l <"$SCRATCH/all")" -gt "$(wc -l <"$SCRATCH/page")" ] &&
        grep -q 'is loaded$' "$SCRATCH/page" && grep -q 'glibc is active' "$SCRATCH/page" && grep -q 'are resident' "$SCRATCH/page" &&
        grep -q 'more findings with --all$' "$SCRATCH/page" && ! grep -q -e --all "$SCRATCH/all"
}
check "without --all the doctor says in ten lines whether flarena is active and where the memory is" few_lines

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
    local status=0 text=$1
    start in_mode glibc PYTHONPATH="$SCRATCH/fake" python3 -m nvflare.private.fed.app.client.client_train "uid=$site" -m "$SCRATCH/site" \
        "${@:2}" || return
    local parent job
    parent=$(sed -n 's/^parent //p' "$SCRATCH/said")
    job=$(sed -n 's/^job \(.*\) ready/\1/p' "$SCRATCH/said")
    { flarena doctor "$job"; flarena doctor "$parent"; } >"$SCRATCH/both" || true
    stop
    cat "$SCRATCH/both"
    if [ -z "$text" ]; then
        [ "$(grep -c 'no problem found' "$SCRATCH/both")" -eq 2 ] || status=1
    else
        [ "$(grep -cF -e "-> $text" "$SCRATCH/both")" -eq 2 ] || status=1
        grep -q "warning  libflarena.so is not loaded, but process $parent, which launched this job, has it" "$SCRATCH/both" || status=1
        grep -q "warning  this process has launched job process $job without libflarena.so" "$SCRATCH/both" || status=1
    fi
    return $status
}
# The scheduler of a cluster starts the job, which has other ancestors. This shell ends, and the job goes on.
# shellcheck disable=SC2016  # the shell expands them
elsewhere=(env -u LD_PRELOAD sh -c 'exec 8<&0; "$@" <&8 &' _ env)
check "a job that a script has started with another environment is found, with the remedy" \
    of_job "let the program between the two (sudo, env -i, a script) keep LD_PRELOAD" env -u LD_PRELOAD
check "a job of NVFlare's Slurm launcher without the library is found, with setup and forward_env as the remedy" \
    of_job "export LD_PRELOAD and the settings in slurm.yaml (job_launcher: setup), and name them in forward_env" \
    "${elsewhere[@]}" NVFLARE_SLURM_CHILD_PROCESS=1
check "a job of NVFlare's Kubernetes launcher without the library is found, with its image or pod_template as the remedy" \
    of_job "name an image with flarena in local/study_runtime.yaml (container: image, or in Kubernetes pod_template)" "${elsewhere[@]}" KUBERNETES_SERVICE_HOST=10.0.0.1
check "a job with the library is no problem" of_job "" env
beside_another_federation() { # TEXT PREFIX...: a client of the same name, without the library, is there first
    local status=0 other
    mkfifo "$SCRATCH/other-input"
    without_preload PYTHONPATH="$SCRATCH/fake" python3 -m nvflare.private.fed.app.client.client_train "uid=$site" -m "$SCRATCH/other" none \
        <"$SCRATCH/other-input" >"$SCRATCH/other-said" 2>&1 &
    other=$!
    exec 6>"$SCRATCH/other-input"
    eventually grep -q parent "$SCRATCH/other-said"
    of_job "$@" || status=$?
    exec 6>&-
    wait "$other"
    rm "$SCRATCH/other-input"
    return $status
}
check "of two clients with the name of the site, the one with the job's workspace has launched it" \
    beside_another_federation "export LD_PRELOAD and the settings in slurm.yaml" "${elsewhere[@]}" NVFLARE_SLURM_CHILD_PROCESS=1

#----- NVFlare's advice for memory
server=$SCRATCH/fake/nvflare/private/fed/app/server
mkdir -p "$server"
cp "$client/worker_process.py" "$server/runner_process.py"
cleanup_of() { # SIDE CLASS ARGS [NAME=VALUE]: level and remedy (or FIELD) about the cleanups of a job whose component has these arguments
    local module=client.worker_process
    [ "$1" = client ] || module=server.runner_process
    mkdir -p "$SCRATCH/kit/job-1/app_$1/config"
    printf '{"workflows": [{"path": "nvflare.%s", "args": %s}]}' "$2" "$3" >"$SCRATCH/kit/job-1/app_$1/config/config_fed_$1.json"
    start in_mode glibc "${@:4}" PYTHONPATH="$SCRATCH/fake" \
        env -C "$SCRATCH" python3 -m nvflare.private.fed.app.$module -m kit -n job-1 -c "$site" || return
    examine "$PID" >"$SCRATCH/found"
    stop
    fields job-cleanup "{level}: {${FIELD:-remedy}}" <"$SCRATCH/found"
}
check_output "a server's job without cleanups is advised 1 round, then 2, then 5, by the argument of its workflow" \
    "note: set it to 1 in the job's config_fed_server.json (some recipes have server_memory_gc_rounds for it); if the peak stays flat, try 2, then 5" \
    cleanup_of server workflows.FedAvg '{}'
check_output "a workflow whose class ignores memory_gc_rounds has no advice" "" cleanup_of server workflows.FedAvgLR '{}'
check_output "a client's job that cleans up after each round is advised 2, then 5" \
    "ok: if the peak stays flat, try 2, then 5: that costs less CPU time" cleanup_of client ClientAPIExecutor '{"memory_gc_rounds": 1}'
check_output "a workflow with an unknown default has no advice for cleanups" "" cleanup_of server workflows.Other '{}'
FIELD=fact check_output "the cleanups of a client by NVFLARE_CLIENT_MEMORY_GC_ROUNDS are found also without a control channel" \
    "ok: the job cleans up after 3 rounds (NVFLARE_CLIENT_MEMORY_GC_ROUNDS)" cleanup_of client Other '{}' FLARENA_GOVERNOR=off NVFLARE_CLIENT_MEMORY_GC_ROUNDS=3
mkdir -p "$SCRATCH/kit/startup"
under_systemd() { # OPTION-OF-THE-SCRIPT OPTION...: the remedy about the start of a kit by systemd
    printf '%s\n' "case \$1 in $1) ;; esac" "python3 -m nvflare.private.fed.app.client.client_train uid=$site -m $SCRATCH/site" 'echo ended' \
        >"$SCRATCH/kit/startup/sub_start.sh"
    # shellcheck disable=SC2016  # the inner shell expands it
    start in_mode glibc PYTHONPATH="$SCRATCH/fake" sh -c 'export SYSTEMD_EXEC_PID=$$; exec bash "$@"' sh \
        "$SCRATCH/kit/startup/sub_start.sh" "${@:2}" || return
    examine "$(sed -n 's/^parent //p' "$SCRATCH/said")" >"$SCRATCH/found"
    stop
    fields kit-foreground '{remedy}' <"$SCRATCH/found"
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
    local status=0
    setpriv --reuid=65534 --regid=65534 --clear-groups "$OPEN_FLARENA" doctor "$PID" >"$SCRATCH/refusal" 2>&1 || status=$?
    stop
    cat "$SCRATCH/refusal"
    [ "$status" -eq 3 ] && grep -q "no permission to read process $PID" "$SCRATCH/refusal"
}
check_as_nobody "another user's process is reported as unreadable, with exit status 3" refused
