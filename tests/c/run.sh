#!/usr/bin/env bash
# C and C++ programs with one behaviour each: the exported functions, cases in which malloc
# interposers often fail, the library's own functions, and the library beside other allocators.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/c" || exit 1

check_programs functions
check_programs traps
if [ "${MODES[0]}" != bare ]; then
    check_with_other_recycler functions/{malloc,realloc,mallinfo}.c
    # shellcheck source=tests/c/api.sh
    . ./api.sh
    # shellcheck source=tests/c/neighbours.sh
    . ./neighbours.sh
    check_api
    check_neighbours
fi
finish
