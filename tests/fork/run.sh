#!/usr/bin/env bash
# Fork: the child has its parent's blocks and none of its cache or governor, and neither process hangs on a lock.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/fork" || exit 1

library=$SCRATCH/libhandlers.so
gcc "${C_FLAGS[@]}" -shared -fPIC library/handlers.c -o "$library" || fail "the library with fork handlers compiles"
# -rdynamic: loader_lock.c stands between the library and libc.
check_programs . -rdynamic -Wl,--as-needed "$library" -Wl,-rpath,"$SCRATCH"
[ "${MODES[0]}" = bare ] ||
    check_with_other_recycler ./threads.c ./signals.c ./library_handlers.c
finish
