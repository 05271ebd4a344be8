#!/usr/bin/env bash
# Settings: the effective values, the user's own values, and the reports of bad and removed ones.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
cd "$ROOT/tests/settings" || exit 1
export COMMAND_TIMEOUT=60

SERVER=(-u -m nvflare.private.fed.app.server.server_train -m /w -s fed_server.json)
CLIENT=(-u -m nvflare.private.fed.app.client.client_train -m /w --set uid=site-1)

says() { # LINES MODE [NAME=VALUE...] COMMAND...: it ends with STATUS or 0, and so many lines in $SCRATCH/err
    local status=0
    in_mode "${@:2}" >"$SCRATCH/out" 2>"$SCRATCH/err" || status=$?
    echo "exit status $status"
    head -c 2000 "$SCRATCH/err" | cat -v
    [ "$status" -eq "${STATUS:-0}" ] && [ "$(wc -l <"$SCRATCH/err")" -eq "$1" ]
}

printed() { [ "$(cat "$SCRATCH/out")" = "$1" ]; } # TEXT: by the program

# One line names the variable and the value, or its wrong part; the program runs.
is_reported_once() { # MODE NAME VALUE [WORD in the line [WRONG PART]]
    local mode=$1 name=$2 value=$3 word=${4-} wrong=${5-$3} line STATUS=3
    says 1 "$mode" "$name=$value" bash -c 'echo runs; exit 3'
    printed runs
    line=$(cat "$SCRATCH/err")
    [[ $line == *"$name"* && $line == *"${wrong:0:20}"* && $line == *"$word"* ]]
    [ "${#line}" -lt 400 ]
}

bad_values() { # MODE
    local row name value word
    for row in "FLARENA_ALLOCATOR tcmalloc $1" "FLARENA_ROLE boss role" "MALLOC_ARENA_MAX many 2" "MALLOC_ARENA_MAX -1 2" \
        "MALLOC_ARENA_MAX 0 2" "MALLOC_ARENA_MAX 1e3 2" "FLARENA_RECYCLE perhaps on" "FLARENA_RECYCLE_MIN 1 512K" \
        "FLARENA_RECYCLE_MIN 100T 512K" "FLARENA_RECYCLE_MIN much 512K" "FLARENA_DECAY_MS -1 " "FLARENA_DECAY_MS soon " \
        "FLARENA_DECAY_MS 99999999999999999999 " "FLARENA_MEMORY_LIMIT lots cgroup" "FLARENA_MEMORY_LIMIT -5G cgroup" \
        "FLARENA_MEMORY_LIMIT 1X cgroup" "FLARENA_AT_LIMIT kill warn" "FLARENA_PRESSURE high auto" "FLARENA_HUGE 4M auto" \
        "FLARENA_GOVERNOR never auto" "FLARENA_SITES some off" "FLARENA_SITES_SAMPLE 12 512K" "FLARENA_GC often auto" \
        "NVFLARE_CLIENT_MEMORY_GC_ROUNDS often 0" "NVFLARE_CUDA_EMPTY_CACHE maybe false" "FLARENA_POOLS some auto" \
        "FLARENA_LOG loud warn" "NVFLARE_CLIENT_MEMORY_PROFILE 2 off"; do
        read -r name value word <<<"$row"
        check "$1: $name=$value is reported in one line with the value that is used" is_reported_once "$1" "$name" "$value" "$word"
    done
}

# A program with the command line of NVFlare's client. It starts another one.
said_without_effect() { # [NAME=VALUE...]: prints the lines of the library without "flarena: "
    in_mode glibc FLARENA_MARKER_FILE="$SCRATCH/unwritten" "$@" sh -c '"$@"; :' "${CLIENT[@]}" sh -c '"$@"; :' "${CLIENT[@]}" \
        sh -c : 2>&1 | sed -n 's/^flarena: \(.* no effect\|[^ ]*: flarena empties no CUDA cache\).*/\1/p'
    [ ! -e "$SCRATCH/unwritten" ]
}

unreadable_preload_boolean() {
    says 1 glibc NVFLARE_ENABLE_JEMALLOC_PRELOAD=maybe python3 -c \
        'import ctypes; f = ctypes.CDLL(None).flarena_allocator; f.restype = ctypes.c_char_p; print(f().decode())'
    printed glibc
    grep -q 'NVFLARE_ENABLE_JEMALLOC_PRELOAD.*maybe' "$SCRATCH/err"
}

removed_value_is_replaced() { # MODE NAME VALUE REPLACEMENT
    says 1 "$1" "$2=$3" true
    [ "$(cat "$SCRATCH/err")" = "flarena: $2=$3 was removed; $4 is used" ]
    in_mode "$1" FLARENA_LOG=info "$2=$3" true 2>&1 | grep -wF "$2=$4"
}

removed_setting_is_reported() { # MODE
    says 1 "$1" FLARENA_HIBERNATE=60 bash -c 'bash -c "true; true"; python3 -c pass; echo runs'
    printed runs
    [ "$(cat "$SCRATCH/err")" = "flarena: FLARENA_HIBERNATE was removed and has no effect; unset it" ]
}

children_do_not_repeat() { # MODE: one of the values is jemalloc's
    local lines=2
    [ "$1" = glibc ] || lines=3
    says $lines "$1" FLARENA_ROLE=boss MALLOC_ARENA_MAX=junk MALLOC_CONF=nonsense:1 \
        bash -c 'bash -c "true; python3 -c pass"; (true); env true; exec sh -c "true; true"'
    [ "$(grep -c FLARENA_ROLE "$SCRATCH/err")" -eq 1 ]
    [ "$(grep -c MALLOC_ARENA_MAX "$SCRATCH/err")" -eq 1 ]
}

another_bad_value_is_reported() { # MODE: the child has another bad value
    says 2 "$1" FLARENA_ROLE=boss bash -c 'FLARENA_ROLE=chief bash -c true'
    grep -c boss "$SCRATCH/err"
    grep -c chief "$SCRATCH/err"
}

# glibc's own settings hold for large blocks, too.
has_setting() { # MODE NAME=VALUE NAME=VALUE: the first one has the effect of the second one
    in_mode "$1" FLARENA_LOG=info "$2" true 2>&1 | grep -wF "$3"
}

info_prints_effective_settings() { # MODE
    in_mode "$1" FLARENA_LOG=info FLARENA_DECAY_MS=777 FLARENA_ROLE=server true 2>"$SCRATCH/err"
    cat "$SCRATCH/err"
    local name
    for name in FLARENA_ROLE FLARENA_RECYCLE FLARENA_DECAY_MS FLARENA_LOG NVFLARE_CLIENT_MEMORY_PROFILE; do
        [ "$(grep -o "$name\b" "$SCRATCH/err" | wc -l)" -eq 1 ]
    done
    grep -q 'FLARENA_DECAY_MS.*777' "$SCRATCH/err"
    grep -q "$1" "$SCRATCH/err"
    in_mode "$1" FLARENA_LOG=info FLARENA_MARKER_FILE=' ' true 2>&1 | grep 'FLARENA_MARKER_FILE=(none'
}

options() { # [NAME=VALUE...] OPTION...: jemalloc's own answer
    local SETTINGS WORDS
    split_settings "$@"
    in_mode jemalloc "${SETTINGS[@]}" python3 option.py "${WORDS[@]}" 2>&1 | xargs
}

# /etc contains only the link that jemallocs with this prefix read.
options_with_a_system_file() {
    in_mode jemalloc unshare -m sh -c \
        'mount -t tmpfs none /etc && ln -s muzzy_decay_ms:-1 /etc/_rjem_malloc.conf && exec python3 option.py muzzy_decay_ms'
}

# The options in the statistics and in FLARENA_LOG=info, without the keys that depend on the system.
reported_options() { # [NAME=VALUE...]
    in_mode jemalloc FLARENA_LOG=info "$@" python3 -c "$REPORTED_OPTIONS" 2>"$SCRATCH/err" | tee "$SCRATCH/reported"
    grep -qF "$(cat "$SCRATCH/reported")" <(without_system_keys <"$SCRATCH/err")
}

reported_options_after_a_change() {
    in_mode jemalloc python3 -c "
import ctypes
milliseconds = ctypes.c_ssize_t(77)
assert ctypes.CDLL(None).mallctl(b'arenas.dirty_decay_ms', None, None, ctypes.byref(milliseconds), ctypes.c_size_t(8)) == 0
$REPORTED_OPTIONS"
}

without_system_keys() {
    sed -E 's/,?(thp:never|slab_sizes:[^, ]*)//g; s/([= ]),/\1/g'
}

# shellcheck disable=SC2089 # Python's
REPORTED_OPTIONS='
import ctypes, json, re
text = ctypes.create_string_buffer(1 << 16)
ctypes.CDLL(None).flarena_stats_json(text, 1 << 16)
reported = json.loads(text.value)["settings"]["MALLOC_CONF"]
print(",".join(pair for pair in reported.split(",") if not re.match("thp:never|slab_sizes:", pair)))'

narenas_under_quota() { # MICROSECONDS of each 100000, in a new cgroup of v1 or v2
    local groups=/sys/fs/cgroup/cpu file=cpu.cfs_quota_us quota=$1 status=0
    [ "$(nproc)" -gt 1 ] || { echo "this process may use one processor only"; exit 77; }
    [ -e $groups/$file ] || { groups=/sys/fs/cgroup file=cpu.max && quota+=" 100000"; }
    if ! { mkdir "$groups/flarena-test-$$" && echo "$quota" >"$groups/flarena-test-$$/$file"; } 2>/dev/null; then
        rmdir "$groups/flarena-test-$$" 2>/dev/null
        echo "this machine permits no new cgroup" && exit 77
    fi
    (echo "$BASHPID" >"$groups/flarena-test-$$/cgroup.procs" && options narenas:u) || status=$?
    rmdir "$groups/flarena-test-$$"
    return $status
}

arenas() { # [NAME=VALUE...] [ARGUMENT...]: prints the number of glibc arenas
    local SETTINGS WORDS
    split_settings "$@"
    in_mode glibc "${SETTINGS[@]}" "$SCRATCH/arenas" "${WORDS[@]}" 2>&1
}

arenas_through_shell() { # SCRIPT [NAME=VALUE...]: the script runs "$@", a server, or a client as `client`
    local script=$1
    shift
    in_mode glibc "$@" sh -c "$script" sh "$SCRATCH/arenas" "${SERVER[@]}" 2>&1
}

need gcc
gcc -Wall -Wextra -Werror -pthread arenas.c -o "$SCRATCH/arenas" || exit 1

for mode in glibc jemalloc; do
    bad_values "$mode"
    check "$mode: children do not repeat the report" children_do_not_repeat "$mode"
    check "$mode: a child with another bad value reports that one" another_bad_value_is_reported "$mode"
    check "$mode: FLARENA_LOG=off prints no message" \
        says 0 "$mode" FLARENA_LOG=off FLARENA_ROLE=boss MALLOC_CONF=nonsense:1 MALLOC_ARENA_MAX=junk true
    check "$mode: FLARENA_DECAY_MS=auto was removed: one line says so, and 300 is used" \
        removed_value_is_replaced "$mode" FLARENA_DECAY_MS auto 300
    check "$mode: FLARENA_HIBERNATE was removed: one line says so, and children do not repeat it" removed_setting_is_reported "$mode"
    check "$mode: FLARENA_LOG=info prints each effective setting once" info_prints_effective_settings "$mode"
done
for row in GLIBC_TUNABLES=glibc.malloc.hugetlb=1,FLARENA_HUGE=2M GLIBC_TUNABLES=glibc.malloc.hugetlb=2,FLARENA_RECYCLE=off \
    GLIBC_TUNABLES=a.b=1:glibc.malloc.perturb=0xa5,FLARENA_RECYCLE=off MALLOC_PERTURB_=0245,FLARENA_RECYCLE=off \
    MALLOC_PERTURB_=0,FLARENA_RECYCLE=on GLIBC_TUNABLES=glibc.malloc.hugetlb=2:glibc.malloc.hugetlb=0,FLARENA_RECYCLE=on; do
    check "glibc: ${row%,*} means ${row##*,}" has_setting glibc "${row%,*}" "${row##*,}"
done
check "jemalloc: MALLOC_PERTURB_=1 means FLARENA_RECYCLE=on" has_setting jemalloc MALLOC_PERTURB_=1 FLARENA_RECYCLE=on
check "NVFLARE_ENABLE_JEMALLOC_PRELOAD=maybe is reported in one line, and glibc serves" unreadable_preload_boolean

LONG=$(printf 'x%.0s' $(seq 10000))
for conf in dirty_decay_ms:abc nonsense:1 dirty_decay_ms "$LONG" : tcache:maybe narenas:-3 dirty_decay_ms:99999999999999999999999; do
    shown=${conf:0:30}
    check "jemalloc: MALLOC_CONF=$shown is reported in one line" is_reported_once jemalloc MALLOC_CONF "$conf"
done
check "jemalloc: the report of several pairs names the bad one" is_reported_once jemalloc MALLOC_CONF \
    dirty_decay_ms:1,tcache:maybe,muzzy_decay_ms:2 'muzzy_decay_ms:2' tcache:maybe
check_output "jemalloc: the default decay is the one that NVFlare documents" "dirty_decay_ms:5000 muzzy_decay_ms:5000" \
    options dirty_decay_ms muzzy_decay_ms
check_output "jemalloc: _RJEM_MALLOC_CONF, for jemallocs in Rust programs, has no effect" \
    "dirty_decay_ms:5000 muzzy_decay_ms:5000" \
    options _RJEM_MALLOC_CONF=muzzy_decay_ms:-1,dirty_decay_ms:7 dirty_decay_ms muzzy_decay_ms
if unshare -m true 2>/dev/null; then
    check_output "jemalloc: /etc/_rjem_malloc.conf has no effect" "muzzy_decay_ms:5000" options_with_a_system_file
else
    skip "jemalloc: /etc/_rjem_malloc.conf has no effect" "this machine permits no mount namespace"
fi
check_output "jemalloc: the last of two values of a key is used" "dirty_decay_ms:2" \
    options MALLOC_CONF=dirty_decay_ms:1,dirty_decay_ms:2 dirty_decay_ms
check_output "jemalloc: options without a default of flarena are used" "narenas:3 dss:disabled abort_conf:False" \
    options MALLOC_CONF=narenas:3,dss:disabled,abort_conf:false narenas:u dss:s abort_conf:b
check_output "jemalloc: the reported options are read back from jemalloc" \
    "dirty_decay_ms:16,narenas:3,tcache_max:16384,muzzy_decay_ms:8" \
    reported_options MALLOC_CONF=dirty_decay_ms:0x10,narenas:3,lg_tcache_max:14,muzzy_decay_ms:010
check_output "jemalloc: a decay that the program changed is reported with its new value" \
    "dirty_decay_ms:77,muzzy_decay_ms:5000" reported_options_after_a_change
if [ "$(uname -m)" = x86_64 ]; then # other architectures have larger jemalloc pages
    SLABS=(arenas.bin.21.size arenas.bin.21.slab_size arenas.bin.25.size arenas.bin.25.slab_size)
    check_output "jemalloc: slabs of 1280 bytes have one page, and slabs of 2560 bytes two" \
        "arenas.bin.21.size:1280 arenas.bin.21.slab_size:4096 arenas.bin.25.size:2560 arenas.bin.25.slab_size:8192" \
        options "${SLABS[@]}"
    check_output "jemalloc: the user's slab sizes replace the default" \
        "arenas.bin.21.size:1280 arenas.bin.21.slab_size:20480 arenas.bin.25.size:2560 arenas.bin.25.slab_size:20480" \
        options MALLOC_CONF='slab_sizes:8-8:1' "${SLABS[@]}"
fi
check_output "jemalloc: a CPU quota of half a core gives four arenas" "narenas:4" narenas_under_quota 50000
check_output "jemalloc: a CPU quota of one and a half cores gives eight arenas" "narenas:8" narenas_under_quota 150000

check_output "glibc: a process without a known role has two arenas" 2 arenas
check_output "a marker file without markers is said to have no effect, once below NVFlare's first process" "FLARENA_MARKER_FILE has no effect" \
    said_without_effect
check_output "a CUDA cache without rounds of cleanup is said not to be emptied" \
    $'FLARENA_MARKER_FILE has no effect\nNVFLARE_CUDA_EMPTY_CACHE=true: flarena empties no CUDA cache' said_without_effect NVFLARE_CUDA_EMPTY_CACHE=1
check_output "after a launcher, and with markers switched off, the library says nothing of that" "" \
    eval 'said_without_effect FLARENA_LAUNCHED=1; said_without_effect NVFLARE_CLIENT_MEMORY_PROFILE=0'
check_output "a program that is not NVFlare's says nothing of a marker file without markers" "" \
    in_mode glibc FLARENA_MARKER_FILE="$SCRATCH/unwritten" sh -c 'sh -c :; :'
asked_without_effect() { in_mode glibc FLARENA_LOG=info FLARENA_MARKER_FILE="$SCRATCH/unwritten" sh -c "sh -c :; :" 2>&1 | grep -c "has no effect"; }
check_output "with FLARENA_LOG=info the first program says that a marker file without markers has no effect" 1 asked_without_effect
check_output "glibc: a client has two arenas" 2 arenas "${CLIENT[@]}"
check_output "glibc: a server has four arenas" 4 arenas "${SERVER[@]}"
check_output "glibc: the user's MALLOC_ARENA_MAX is kept" 3 arenas MALLOC_ARENA_MAX=3 "${SERVER[@]}"
# shellcheck disable=SC2016 # the inner shell expands these
{
    check_output "glibc: children inherit the default in their environment" 2 in_mode glibc sh -c 'env | sed -n s/^MALLOC_ARENA_MAX=//p'
    check_output "glibc: a server under a shell replaces the default that the shell inherited" 4 \
        arenas_through_shell '"$@"'
    check_output "glibc: the user's choice is kept through a shell" 3 arenas_through_shell '"$@"' MALLOC_ARENA_MAX=3
    check_output "glibc: a value exported in the shell counts as the user's choice" 5 arenas_through_shell 'MALLOC_ARENA_MAX=5 "$@"'
    check_output "glibc: a client has two arenas after a kit exports MALLOC_ARENA_MAX:-4" 2 \
        arenas_through_shell 'export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-4}"; "$1" -m nvflare.private.fed.app.client.client_train'
}
finish
