#!/usr/bin/env bash
# Compares flarena with other allocators.
#
#   scripts/bench.sh [--quick] [--only NAME,NAME] [WORKLOAD...]     --help lists workloads and options
#
# Installs missing packages, builds the library, and runs scripts/bench/main.py. The tables are written to
# build/bench/results.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/bench/setup.sh
. "$here/bench/setup.sh"

case " $* " in
*" --help "* | *" -h "* | *" --report "*) ;;
*)
  install_missing
  [ -n "${FLARENA_LIB:-}" ] || build_library
  ;;
esac
exec /usr/bin/python3 "$here/bench/main.py" "$@"
