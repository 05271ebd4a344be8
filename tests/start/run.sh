#!/usr/bin/env bash
# sub_start.sh sets the environment of a job, keeps the user's, and starts the job whatever is wrong.
cd "$(dirname "$0")" || exit 1
# shellcheck source=tests/lib.sh
. ../lib.sh
# shellcheck source=tests/start/libraries.sh
. ./libraries.sh
# shellcheck source=tests/start/kits.sh
. ./kits.sh

if ! need gcc || ! need dash; then
    skip "sub_start.sh starts jobs" "gcc and dash are needed"
    finish
    exit
fi
chmod 755 "$SCRATCH" # one test becomes another user
export SHOW=$ROOT/tests/start/show.sh
shell=dash
script=$ROOT/sub_start.sh
library=$SCRATCH/plain/libflarena.so
mkdir "$SCRATCH/plain"
cp "$LIB" "$library"
foreign "$SCRATCH/one.so"
cp "$SCRATCH/one.so" "$SCRATCH/two.so"
jemalloc=$(compgen -G "/usr/lib/*/libjemalloc.so.2") || jemalloc=

start() { # [NAME=VALUE...] -- ARGUMENT...: run the script; other settings are unset
    local BEFORE AFTER
    split_at_dashes "$@"
    # shellcheck disable=SC2086  # $shell may be two words: busybox sh
    without_preload -u PYTHONPATH FLARENA_LIB="$library" "${BEFORE[@]}" $shell "$script" "${AFTER[@]}"
}
quiet() { start FLARENA_LOG=off "$@"; } # the same, without messages

#----- the environment of a started program
check_output "the library and an older preload are both loaded" "2" \
    quiet LD_PRELOAD="$SCRATCH/two.so" -- -- sh -c "grep -oE '/(two|libflarena)[.]so' /proc/self/maps | sort -u | wc -l"
relative_library() {
    cd "$SCRATCH"
    quiet FLARENA_LIB=plain/libflarena.so -- -- sh -c "cd / && '$SHOW' LD_PRELOAD"
}
check_output "a relative FLARENA_LIB works from any folder" "LD_PRELOAD=$library" relative_library
mkdir "$SCRATCH/plain/hooks"
: >"$SCRATCH/plain/hooks/sitecustomize.py"
check_output "a command with a role gets its number of arenas, recorded as flarena's choice" \
    $'MALLOC_ARENA_MAX=2\nFLARENA_INHERITED=arena_max=2' \
    quiet FLARENA_ROLE=client -- -- "$SHOW" MALLOC_ARENA_MAX FLARENA_INHERITED

#----- the command is unchanged
check_output "arguments arrive unchanged" '<a b><*><><"q">' \
    quiet -- -- printf '<%s><%s><%s><%s>' 'a b' '*' '' '"q"'
input_and_status() {
    local status=0
    echo hello | quiet -- -- sh -c 'cat; exit 7' || status=$?
    echo $status
}
check_output "input arrives, and the exit status is the command's" $'hello\n7' input_and_status
process_before_and_after() { sh -c 'echo $$; exec "$@"' sh env FLARENA_LOG=off FLARENA_LIB="$library" "$script" -- sh -c 'echo $$' | uniq | wc -l; }
check_output "the command replaces the script in the same process" 1 process_before_and_after
no_such_command() { start -- -- /no/such/command || echo $?; }
check "a command that does not exist ends with 127" eval "no_such_command 2>&1 | grep -qx 127"
closed_stderr() { start FLARENA_LIB=/nowhere -- -- echo started 2>&-; }
check_output "the command starts with a closed stderr" started closed_stderr

#----- kits
mock_kit "$SCRATCH/my kit/client/startup" client
mock_kit "$SCRATCH/my kit/server/startup" server
client="$SCRATCH/my kit/client/startup"
server="$SCRATCH/my kit/server/startup"
kit_prints() { printf '%s\nLD_PRELOAD=%s\nMALLOC_ARENA_MAX=%s\nFLARENA_ROLE=%s' "$@"; }

kits_print() { # of the input: SENTENCE, and in the next line ARGUMENTS-SEEN|ARENAS|ROLE|ARGUMENTS of `quiet`
    local sentence seen arenas role arguments
    while read -r sentence && IFS='|' read -r seen arenas role arguments; do
        check_output "$sentence" "$(kit_prints "${seen#    }" "$library" "$arenas" "$role")" eval "quiet $arguments"
    done
}
kits_print <<'END'
a client's kit gets 2 arenas although it exports 4, and its arguments
    <--verify><--once><a b>|2|client|-- "$client" --verify --once "a b"
a server's kit gets 4 arenas
    <>|4|server|-- "$server"
the user's MALLOC_ARENA_MAX survives
    <>|8|client|MALLOC_ARENA_MAX=8 -- "$client"
the user's FLARENA_ROLE wins over the kit's
    <>|4|server|FLARENA_ROLE=server -- "$client"
a kit in jemalloc mode preloads no second jemalloc
    <>|2|client|NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$client"
FLARENA_ALLOCATOR=glibc keeps a kit from adding jemalloc
    <>|2|client|FLARENA_ALLOCATOR=glibc NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$client"
END
check_output "the program of a kit in jemalloc mode still sees the switch" "NVFLARE_ENABLE_JEMALLOC_PRELOAD=1" \
    quiet NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- -- "$SHOW" NVFLARE_ENABLE_JEMALLOC_PRELOAD
cp "$client/sub_start.sh" "$client/start.sh" # for both_ways.sh
relative_kit() { cd "$client/.." && quiet -- startup; }
check_output "a relative kit works" "$(kit_prints '<>' "$library" 2 client)" relative_kit
chmod -x "$client/sub_start.sh"
check_output "a kit without executable bits works" "$(kit_prints '<x>' "$library" 2 client)" quiet -- "$client" x

#----- mistakes in the call
refused() { # TEXT ARGUMENT...: status 2 and one line with this text
    local text=$1 output status=0
    shift
    output=$(start -- "$@" 2>&1) || status=$?
    printf '%s\n' "$output"
    [ "$status" -eq 2 ]
    [ "$(wc -l <<<"$output")" -eq 1 ]
    [[ $output == *"$text"* ]]
}
check "a folder that is no kit is refused" refused "holds no sub_start.sh" "$SCRATCH"
check "-- without a command is refused" refused "which command?" --
cp "$script" "$SCRATCH/sub_start.sh"
check "a kit overwritten with this script is refused" refused "copy of this script" "$SCRATCH"
no_argument() {
    local status=0
    start -- >"$SCRATCH/usage" 2>&1 || status=$?
    [ "$status" -eq 2 ]
    grep -q ^usage: "$SCRATCH/usage"
}
check "no argument shows the usage and fails" no_argument
check "--help shows the usage and succeeds" eval 'start -- --help | grep -q ^usage:'

#----- libraries that cannot be used: one line is printed, and the job starts
cannot() { # REASON LIBRARY: one line has the reason, and the job starts with glibc
    local output
    output=$(start FLARENA_LIB="$2" -- -- "$SHOW" LD_PRELOAD 2>&1)
    printf '%s\n' "$output"
    [ "$(wc -l <<<"$output")" -eq 2 ]
    grep -q "^flarena: .*$1.*; starting with the system's malloc$" <<<"$output"
    grep -qx "LD_PRELOAD is unset" <<<"$output"
}
bad=$SCRATCH/bad
mkdir -p "$bad" "$SCRATCH/with space" "$SCRATCH/with:colon"
wrong_architecture "$bad/arch.so"
too_new "$bad/new.so"
foreign "$bad/foreign.so"
crashing "$bad/crash.so"
echo "not a library" >"$bad/text.so"
: >"$bad/empty.so"
head -c 5000 "$library" >"$bad/cut.so"
cp "$library" "$SCRATCH/with space/libflarena.so"
cp "$library" "$SCRATCH/with:colon/libflarena.so"
cp "$library" "$SCRATCH/\$LIB.so"
check "a missing library causes one line" cannot "No such file" "$bad/gone.so"
check "a folder instead of a library causes one line" cannot "cannot be used" "$bad"
check "a library for another architecture causes one line" cannot "built for [a-z]" "$bad/arch.so"
check "a library that needs a newer glibc causes one line that names it" cannot "it needs glibc 2.99" "$bad/new.so"
check "a library that is not flarena's causes one line" cannot "does not answer" "$bad/foreign.so"
check "a library that crashes causes one line" cannot "cannot be used" "$bad/crash.so"
check "a text file causes one line" cannot "it is not a library" "$bad/text.so"
check "an empty file causes one line" cannot "it is not a library" "$bad/empty.so"
check "a truncated library causes one line" cannot "cut.so cannot be used" "$bad/cut.so"
check "a library whose path has a space causes one line" cannot "LD_PRELOAD cannot contain a path" "$SCRATCH/with space/libflarena.so"
check "a library whose path has a colon causes one line" cannot "LD_PRELOAD cannot contain a path" "$SCRATCH/with:colon/libflarena.so"
check "a library whose path ld.so would expand causes one line" cannot "LD_PRELOAD cannot contain a path" "$SCRATCH/\$LIB.so"
unreadable() {
    local output
    [ "$(id -u)" -eq 0 ] || { echo "root is needed to become another user" && exit 77; }
    cp "$library" "$bad/secret.so"
    chmod 000 "$bad/secret.so"
    cp "$script" "$SCRATCH/sub_start.sh"
    output=$(setpriv --reuid=65534 --regid=65534 --clear-groups env FLARENA_LIB="$bad/secret.so" "$SCRATCH/sub_start.sh" -- echo started 2>&1)
    [[ $output == "flarena: $bad/secret.so cannot be used: "*"; starting with the system's malloc"$'\nstarted' ]]
}
check "a library without read permission causes one line" unreadable

# shellcheck source=tests/start/both_ways.sh
. ./both_ways.sh
# shellcheck source=tests/start/fallback.sh
. ./fallback.sh
# shellcheck source=tests/start/places.sh
. ./places.sh
# shellcheck source=tests/start/built_kits.sh
. ./built_kits.sh
finish
