#!/usr/bin/env bash
# Runs one suite, tests/NAME/run.sh, with a time limit. test.sh counts its results.
#
#   scripts/suite.sh NAME
#
# At the limit the stacks of the suite's processes and the ends of its logs are printed and kept in build/hangs.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
ROOT=$PWD
SUITE_SECONDS=${SUITE_SECONDS:-2400} # the slowest suite takes a few minutes, and more on a busy machine
# shellcheck source=tests/hang.sh
. tests/hang.sh

name=$1
status=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/flarena-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
run_limited "suite-$name" "$SUITE_SECONDS" "$scratch" env TEST_SCRATCH="$scratch" "tests/$name/run.sh" || status=$?
[ "$status" -ne "$STATUS_AT_LIMIT" ] || show_hang "suite-$name"
exit "$status"
