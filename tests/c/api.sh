# shellcheck shell=bash
# The library's interface for programs: symbols, header, XML and JSON.

exported_symbols() {
    nm -D --defined-only "$LIB" | awk '$2 ~ /^[A-Za-z]$/ { print $3 }' | sed 's/@.*//' | LC_ALL=C sort -u
}

# A program linked with the library needs no preload, because the library comes before libc.
linked_without_preload() {
    without_preload TEST_MODE=glibc TEST_LINE="$(line_of api/statistics.c 'dotted number')" "$SCRATCH/api/statistics"
}

xml_of_malloc_info() { # MODE
    run_as "$1" TEST_LINE="$(line_of functions/heap.c XML)" "$SCRATCH/functions/heap" |
        python3 -c 'import sys, xml.etree.ElementTree as tree; root = tree.fromstring(sys.stdin.read()); assert root.tag == "malloc"'
}

json_of_stats() { # MODE
    run_as "$1" TEST_LINE="$(line_of api/statistics.c snprintf)" "$SCRATCH/api/statistics" | MODE=$1 python3 -c '
import json, os, sys
stats = json.load(sys.stdin)
expected = """version pid allocator owner role proc site round stage settings rss_bytes anon_bytes file_bytes swap_bytes
hwm_bytes marked_rss_bytes stages live_bytes retained_bytes recycled_bytes pymalloc_bytes arrow_bytes
pinned_bytes gpu_allocated_bytes gpu_reserved_bytes cgroup_bytes cgroup_limit_bytes backend recycler governor""".split()
missing = [name for name in expected if name not in stats]
assert not missing, f"missing: {missing}"
assert stats["allocator"] == os.environ["MODE"], stats["allocator"]
assert stats["owner"] is True
assert stats["rss_bytes"] > 1 << 20 and stats["hwm_bytes"] >= stats["rss_bytes"], stats
assert all(isinstance(value, (int, float, str)) for value in stats["backend"].values()), stats["backend"]
fallbacks = stats["recycler"]["fallbacks"]
assert fallbacks["patched_ended"] == fallbacks["multi_vma_unmapped"], fallbacks  # the former name
'
}

header_is_valid_c_and_cpp() {
    printf '#include "flarena.h"\nint main(void) { return flarena_trim() > 1; }\n' >"$SCRATCH/header.c"
    cp "$SCRATCH/header.c" "$SCRATCH/header.cpp"
    gcc -std=c89 -pedantic -Wall -Wextra -Werror -I "$ROOT/include" "$SCRATCH/header.c" -o "$SCRATCH/header" -L "$(dirname "$LIB")" -lflarena
    g++ -std=c++98 -pedantic -Wall -Wextra -Werror -I "$ROOT/include" "$SCRATCH/header.cpp" -o "$SCRATCH/header" -L "$(dirname "$LIB")" -lflarena
}

check_api() {
    local mode
    check_output "the library exports exactly the malloc family, flarena_* and jemalloc's API" \
        "$(cat exports.txt)" exported_symbols
    check "flarena.h compiles without warnings as C89 and as C++98" header_is_valid_c_and_cpp
    local -x LD_LIBRARY_PATH=${LIB%/*}
    check_programs api -L "${LIB%/*}" -Wl,--no-as-needed -lflarena
    check "a program linked with the library uses its malloc without a preload" linked_without_preload
    for mode in "${MODES[@]}"; do
        check "$mode: malloc_info writes well-formed XML" xml_of_malloc_info "$mode"
        check "$mode: flarena_stats_json writes JSON with every documented field" json_of_stats "$mode"
    done
}
