#!/usr/bin/env bash
# show.sh FOLDER: prints what quickstart.sh found: the whole comparison, and the report's sentence about the leak.
set -euo pipefail

wrapped() { # lines of at most 80 columns; the parts after a break are indented
    awk '{
        while (length($0) > 80 && match(substr($0, 1, 81), / [^ ]*$/) > 6) {
            print substr($0, 1, RSTART - 1)
            $0 = "     " substr($0, RSTART + 1)
        }
        print
    }'
}

cat "$1/compare.txt"
echo
sed -n '/^STAGE/q; /./p' "$1/leak.txt" | wrapped
printf '\nmore: %s/{compare.html,leak.html}\n' "${1#"$PWD/"}"
