#!/usr/bin/env bash
# CPython passes the same regression tests as without the library
# shellcheck source=tests/foreign/common.sh
. "$(dirname "$0")/common.sh"

SHORT=(test_array test_memoryview test_mmap test_struct)
WHOLE=(test_array test_asyncio test_bytes test_bz2 test_concurrent_futures test_ctypes test_deque test_descr test_dict
    test_exceptions test_faulthandler test_fork1 test_gc test_generators test_hashlib test_io test_itertools test_json test_largefile
    test_list test_long test_lzma test_marshal test_memoryio test_memoryview test_mmap test_multiprocessing_fork
    test_multiprocessing_forkserver test_multiprocessing_spawn test_os test_pickle test_posix test_pty test_queue test_re
    test_resource test_select test_set test_shelve test_signal test_socket test_sort test_sqlite3 test_str test_struct
    test_subprocess test_support test_tempfile test_thread test_threading test_threadsignals test_tracemalloc test_unicode
    test_wait3 test_wait4 test_weakref test_xml_etree test_zipfile test_zlib)

python_with_tests() { # prints a Python that has them
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import test.test_array, test.test_mmap' 2>/dev/null && { echo "$python"; return; }
    done
    return 1
}

prepare() {
    python_with_tests >/dev/null || cannot "no Python here has its tests; Debian has them in libpython3.*-testsuite"
}

# With PYTHONMALLOC=malloc each object is a block of malloc, and not of Python's own pools.
regrtest() { # TEST...
    PYTHONMALLOC=malloc PYTHONHASHSEED=1 "$(python_with_tests)" -m test --junit-xml results.xml --timeout 600 "$@" >log 2>&1 || tail -n 40 log >&2
    junit_outcome results.xml
}

short() { regrtest "${SHORT[@]}"; }
whole() { regrtest "${WHOLE[@]}"; }
main "$@"
