#!/usr/bin/env bash
# Compares flarena with its peers: scripts/bench.sh [--quick] [--only NAME,NAME] [a b c d e f g h i micro]
# Installs the peers, builds the library, then runs scripts/bench/main.py (see --help). Results: build/bench/.
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
