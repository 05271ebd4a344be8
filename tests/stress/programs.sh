# shellcheck shell=bash
# Builds the stress program, for this suite, for tests/faults and for soak.sh.
build_stress() { # TO [OPTION...]
    local to=$1 here="$ROOT/tests/stress"
    shift
    gcc "${C_FLAGS[@]}" "$here"/{stress,options,model,family,marks,processes,refusals}.c -o "$to" "$@" -ldl
}
