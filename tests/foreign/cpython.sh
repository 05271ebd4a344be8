# shellcheck shell=bash
# CPython passes the same regression tests as without the library

SHORT=(test_array test_memoryview test_mmap test_struct)
WHOLE=(test_array test_asyncio test_bytes test_bz2 test_concurrent_futures test_ctypes test_deque test_descr test_dict
    test_exceptions test_faulthandler test_fork1 test_gc test_generators test_hashlib test_io test_itertools test_json test_largefile
    test_list test_long test_lzma test_marshal test_memoryio test_memoryview test_mmap test_multiprocessing_fork
    test_multiprocessing_forkserver test_multiprocessing_spawn test_os test_pickle test_posix test_pty test_queue test_re
    test_resource test_select test_set test_shelve test_signal test_socket test_sort test_sqlite3 test_str test_struct
    test_subprocess test_support test_tempfile test_thread test_threading test_threadsignals test_tracemalloc test_unicode
    test_wait3 test_wait4 test_weakref test_xml_etree test_zipfile test_zlib)

# Versions differ in the names of their tests, and some install without all of them. The Python that has more of these
# tests is used.
PYTHONS=(python3 /usr/bin/python3)

tests_of() { # PYTHON TEST...: prints those of the tests that it has
    "$1" - "${@:2}" <<'END' 2>/dev/null
import importlib.util, sys
for name in sys.argv[1:]:
    if importlib.util.find_spec("test." + name):
        print(name)
END
}

prepare() {
    local version python
    if [ "${FOREIGN-}" = whole ]; then
        version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])') &&
            packages "libpython$version-testsuite" || echo "libpython$version-testsuite cannot be installed"
    fi
    for python in "${PYTHONS[@]}"; do
        [ "$(tests_of "$python" "${SHORT[@]}" | wc -l)" -lt "${#SHORT[@]}" ] || return 0
    done
    cannot "no Python here has its tests; Debian has them in libpython3.*-testsuite"
}

# With PYTHONMALLOC=malloc each object is a block of malloc, and not of Python's own pools. Left out: in some virtual machines a
# VSOCK connection to the same machine is never accepted, even without the library.
regrtest() { # TEST...
    local python used='' of_this tests=()
    for python in "${PYTHONS[@]}"; do
        mapfile -t of_this < <(tests_of "$python" "$@")
        [ "${#of_this[@]}" -le "${#tests[@]}" ] || { tests=("${of_this[@]}") used=$python; }
    done
    PYTHONMALLOC=malloc PYTHONHASHSEED=1 "$used" -m test -j2 --junit-xml results.xml --timeout 600 --ignore '*VSOCK*' "${tests[@]}" >log 2>&1 || tail -n 40 log >&2
    echo "$("$used" -V), ${#tests[@]} test files"
    junit_outcome results.xml
}

short() { regrtest "${SHORT[@]}"; }
whole() { regrtest "${WHOLE[@]}"; }
