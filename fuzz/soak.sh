#!/usr/bin/env bash
# Runs libFuzzer on each target for some minutes. Failing inputs are written to build/fuzz.
#
#   fuzz/soak.sh 10                 ten minutes for each target, from the inputs in fuzz/corpus
#   fuzz/soak.sh 10 recycler        only this target
#   fuzz/soak.sh 0 keep             afterwards: adds the inputs that reach new code to the corpus
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/lib.sh
. tests/lib.sh
MOST_FILES=40
MOST_BYTES=1024
BY_HASH=$(printf '[0-9a-f]%.0s' {1..40})
TARGETS='settings malloc_conf marker report control recycler'

# Builds with the stable compiler. `--target` keeps the instrumentation out of proc macros and build scripts.
build_instrumented() {
    local pass='-sanitizer-coverage-'
    cp Cargo.lock fuzz/Cargo.lock || return 1
    RUSTFLAGS="--cfg fuzzing -Awarnings -Cpasses=sancov-module -Cllvm-args=${pass}level=4 -Cllvm-args=${pass}inline-8bit-counters \
        -Cllvm-args=${pass}pc-table -Cllvm-args=${pass}trace-compares" \
        cargo build --quiet --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --target "$(uname -m)-unknown-linux-gnu" \
        --release --bins --tests --message-format json-render-diagnostics
}
program() { # TARGET: the path of its program; that of a test ends in a hash
    grep -oE "\"executable\":\"[^\"]*/$1(-[0-9a-f]+)?\"" "$BUILT" | tail -n 1 | cut -d '"' -f 4
}
fuzz() { # TARGET SECONDS
    local target=$1 out=build/fuzz/$1
    mkdir -p "$out"
    "$(program "$target")" -max_total_time="$2" -max_len=$MOST_BYTES -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out-" \
        -print_final_stats=1 "$out" "fuzz/corpus/$target" >"$out.log" 2>&1 || { tail -n 40 "$out.log" && return 1; }
    grep -E '^(Done|stat::number_of_executed_units)' "$out.log"
}
keep() { # TARGET: keeps inputs with a name and replaces those that libFuzzer named
    local out=build/fuzz/$1 corpus=fuzz/corpus/$1 merged=build/fuzz/$1-merged room
    rm -rf "$merged"
    mkdir -p "$merged" "$out"
    "$(program "$1")" -merge=1 -max_len=$MOST_BYTES "$merged" "$corpus" "$out" >"$out.log" 2>&1 || { tail -n 20 "$out.log" && return 1; }
    find "$corpus" -name "$BY_HASH" -delete
    room=$((MOST_FILES - $(find "$corpus" -type f | wc -l)))
    # Takes inputs of each size from the list, which is sorted by size.
    find "$merged" -type f -printf '%s %p\n' | sort -n | awk -v room=$room \
        '{ path[NR] = $2 } END { for (i = 1; i <= room && i <= NR; i++) print path[NR <= room ? i : int(i * NR / room)] }' |
        xargs -r cp -t "$corpus"
}

need g++ || { skip "fuzzing finds no failure" "g++ is needed" && finish && exit; }
minutes=${1:?minutes for each target}
wanted=${2:-}
BUILT=$SCRATCH/built
build_instrumented >"$BUILT" || exit 1
for target in $TARGETS; do
    case $wanted in
    keep) keep "$target" ;;
    '' | "$target") check "$minutes minutes of fuzzing $target find no failure" fuzz "$target" $((minutes * 60)) ;;
    esac
done
finish
