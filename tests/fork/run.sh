#!/usr/bin/env bash
# Forks: what a child inherits, what it must not, and that neither side waits for a lock for ever. Three programs that fork
# stay with what they need: recycler/folios/forked.c a system that gives pages of 64 KiB, hibernate/forked.c swap and a process
# that hibernates, governor/off/child.c a process without a governor.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/fork" || exit 1

COMMAND_TIMEOUT=120
library=$SCRATCH/libhandlers.so
gcc "${C_FLAGS[@]}" -shared -fPIC library/handlers.c -o "$library" || fail "the library with fork handlers compiles"
check_programs . -Wl,--as-needed "$library" -Wl,-rpath,"$SCRATCH"
check_source gathered.c "it is the recycler that makes it so: $(sentence_of gathered.c)" \
    fails_without_recycler "$SCRATCH/gathered"
[ "${MODES[0]}" = bare ] ||
    check_with_other_recycler ./while_allocating.c ./signals_that_fork.c ./long_lines.c ./handlers_of_a_library.c
finish
