#!/usr/bin/env bash
# Forks: what a child inherits, what it must not, and that neither side waits for a lock for ever.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/fork" || exit 1

COMMAND_TIMEOUT=120
check_programs .
[ "${MODES[0]}" = bare ] || check_with_other_recycler ./while_allocating.c
finish
