#!/usr/bin/env bash
# Runs libFuzzer on each target for some minutes. Its findings are in build/fuzz.
#
#   fuzz/soak.sh 10                 ten minutes each, from the inputs in fuzz/corpus
#   fuzz/soak.sh 10 recycler        only this target
#   fuzz/soak.sh 0 keep             afterwards: adds inputs that reached new code to the corpus
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/lib.sh
. tests/lib.sh
MOST_FILES=40
MOST_BYTES=1024
BY_HASH=$(printf '[0-9a-f]%.0s' {1..40})
# TARGET:CRATE
TARGETS='settings:shared malloc_conf:shared marker:shared report:cli control:shim recycler:recycler'

# With the stable compiler. --target keeps proc macros and build scripts free of instrumentation.
build_instrumented() {
    local pass='-sanitizer-coverage-'
    RUSTFLAGS="--cfg fuzzing -Awarnings -Cpasses=sancov-module -Cllvm-args=${pass}level=4 -Cllvm-args=${pass}inline-8bit-counters \
        -Cllvm-args=${pass}pc-table -Cllvm-args=${pass}trace-compares" \
        cargo build --quiet --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target "$(uname -m)-unknown-linux-gnu" \
        --release --tests --message-format json-render-diagnostics
}
program() { # CRATE: the path of its test program
    grep -o "\"executable\":\"[^\"]*/$1-[^\"]*\"" "$BUILT" | tail -n 1 | cut -d '"' -f 4
}
fuzz() { # TARGET PROGRAM SECONDS
    local target=$1 out=build/fuzz/$1
    mkdir -p "$out"
    FUZZ_TARGET=$target "$2" -max_total_time="$3" -max_len=$MOST_BYTES -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out-" \
        -print_final_stats=1 "$out" "fuzz/corpus/$target" >"$out.log" 2>&1 || { tail -n 40 "$out.log" && return 1; }
    grep -E '^(Done|stat::number_of_executed_units)' "$out.log"
}
keep() { # TARGET PROGRAM: inputs with a name stay; those that libFuzzer named are replaced
    local target=$1 out=build/fuzz/$1 corpus=fuzz/corpus/$1 merged=build/fuzz/$1-merged room
    rm -rf "$merged"
    mkdir -p "$merged" "$out"
    FUZZ_TARGET=$target "$2" -merge=1 -max_len=$MOST_BYTES "$merged" "$corpus" "$out" >"$out.log" 2>&1
    find "$corpus" -name "$BY_HASH" -delete
    room=$((MOST_FILES - $(find "$corpus" -type f | wc -l)))
    # The list is sorted by size: take some of each size.
    find "$merged" -type f -printf '%s %p\n' | sort -n | awk -v room=$room \
        '{ path[NR] = $2 } END { for (i = 1; i <= room && i <= NR; i++) print path[NR <= room ? i : int(i * NR / room)] }' |
        xargs -r cp -t "$corpus"
}

need g++ || { skip "fuzzing finds no failure" "g++ is needed" && finish && exit; }
minutes=${1:?minutes for each target}
wanted=${2:-}
BUILT=$SCRATCH/built
build_instrumented >"$BUILT"
for row in $TARGETS; do
    target=${row%:*}
    case $wanted in
    keep) keep "$target" "$(program "${row#*:}")" ;;
    '' | "$target") check "$minutes minutes of fuzzing $target find no failure" fuzz "$target" "$(program "${row#*:}")" $((minutes * 60)) ;;
    esac
done
finish
