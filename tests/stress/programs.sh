# shellcheck shell=bash
# Builds the stress program: for this suite, tests/faults and tests/endurance.
build_stress() { # PROGRAM [OPTION...]
    local program=$1 here="$ROOT/tests/stress"
    shift
    gcc "${C_FLAGS[@]}" "$here"/{stress,options,model,family,attributes,processes,failures}.c -o "$program" "$@" -ldl
}
