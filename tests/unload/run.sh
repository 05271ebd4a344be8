#!/usr/bin/env bash
# A Python, whose code flarena calls, may be closed, loaded again and loaded twice.
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
cd "$ROOT/tests/unload" || exit 1

export PLUGIN=$SCRATCH/libplugin.so LIBPYTHON LIBPYTHON_COPY=$SCRATCH/libpython-copy.so
# Every function of Python that the library looks up.
sed -n 's/.*c"\(Py[A-Za-z_]*\)".*/void \1(void) {}/p' "$ROOT"/src/shim/python{,/originals}.rs | grep -v Py_IsInitialized | sort -u >"$SCRATCH/functions.c"
gcc "${C_FLAGS[@]}" -shared -fPIC lib/plugin.c "$SCRATCH/functions.c" -o "$PLUGIN" || fail "the plugin compiles"

LIBPYTHON=$(ldconfig -p | sed -n 's,.* => \(.*/libpython3\.[0-9]*\.so[.0-9]*\)$,\1,p' | head -n 1)
[ -n "$LIBPYTHON" ] && cp "$LIBPYTHON" "$LIBPYTHON_COPY"
compile_all .
for mode in "${MODES[@]}"; do
    check_tests_of plugin.c "$mode"
    if [ -n "$LIBPYTHON" ]; then
        check "$mode: $(sentence_of libpython.c)" run_program "$mode" "$SCRATCH/libpython"
    else
        skip "$mode: $(sentence_of libpython.c)" "needs libpython3"
    fi
done
finish
