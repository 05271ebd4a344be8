# shellcheck shell=bash
# stress-ng verifies blocks, mappings, forks and threads with the same result

prepare() { need stress-ng; }

stressor() { # NAME OPERATIONS [OPTION...]: a fixed number of operations, so that each run is the same
    local name=$1 operations=$2 verify=(--verify)
    # Its verification expects that a child ends at once, which fails on a busy machine, also without the library.
    [ "$name" != zombie ] || verify=()
    shift 2
    timeout 1800 stress-ng --"$name" 2 --"$name"-ops "$operations" "${verify[@]}" --temp-path . "$@" >log 2>&1
    echo "$name $*: exit status $?, $(grep -cE 'fail:|error:' log) failures"
    grep -E 'fail:|error:|unrecognized|out of range' log >&2
    true
}

stressors() { # FACTOR
    # With more live blocks the time grows faster than the number of operations.
    stressor malloc $(($1 * 2000)) --malloc-bytes 32M --malloc-max 1000
    stressor malloc $(($1 * 500)) --malloc-bytes 64M --malloc-thresh 65536 --malloc-pthreads 4
    stressor malloc $(($1 * 200)) --malloc-bytes 16M --malloc-max 32 --malloc-touch
    stressor mmap "$1" --mmap-bytes 64K
    stressor mremap "$1" --mremap-bytes 1M
    stressor fork $(($1 * 20))
    stressor vfork "$1"
    stressor clone $(($1 * 5)) --clone-max 16
    stressor pthread $(($1 * 5)) --pthread-max 64
    stressor bigheap $(($1 * 20)) --bigheap-growth 256K
    # The brk stressor reads below the program break, and crashes with each malloc whose heap is elsewhere, such as
    # Debian's libjemalloc2. Its success is not printed, so that the outcome of all modes is the same.
    [ "${NVFLARE_ENABLE_JEMALLOC_PRELOAD-}" = true ] || stressor brk $(($1 * 100)) | grep -v 'exit status 0, 0 failures'
    stressor zombie $(($1 * 20)) --zombie-max 32
}

short() { stressors 1; }
whole() { stressors 500; }
