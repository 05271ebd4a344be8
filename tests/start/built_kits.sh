# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library, bad ...
# The kits that NVFlare provisions with flarena.provision.FlarenaBuilder in project.yml.

provision() { # NVFLARE_VERSION FOLDER BUILDER...: provisions a project with these builders; prints what NVFlare prints
    local venv folder=$2 builder
    venv=$("$ROOT/scripts/venv.sh" "$1" 2>"$SCRATCH/venv.log") || give_up 77 "$(tail -n 1 "$SCRATCH/venv.log")"
    mkdir -p "$folder"
    {
        sed '/^builders:/,$d' "$venv"/lib/python3*/site-packages/nvflare/lighter/dummy_project.yml
        echo builders:
        for builder in "${@:3}"; do
            case $builder in
                WorkspaceBuilder) printf '  - {path: nvflare.lighter.impl.workspace.%s, args: {template_file: [master_template.yml]}}\n' "$builder" ;;
                StaticFileBuilder) printf '  - {path: nvflare.lighter.impl.static_file.%s, args: {config_folder: config}}\n' "$builder" ;;
                FlarenaBuilder) printf '  - {path: flarena.provision.%s, args: {libraries: [%s, %s]}}\n' "$builder" "$library" "$bad/arch.so" ;;
                CertBuilder) printf '  - {path: nvflare.lighter.impl.cert.%s}\n' "$builder" ;;
                SignatureBuilder) printf '  - {path: nvflare.lighter.impl.signature.%s}\n' "$builder" ;;
                ContextBuilder) printf '  - {path: context.%s}\n' "$builder" ;;
            esac
        done
    } >"$folder/project.yml"
    # NVFlare 2.9 signs only kits that have a context for homomorphic encryption.
    printf '%s\n' >"$folder/context.py" 'from pathlib import Path' 'from nvflare.lighter.spec import Builder' \
        'class ContextBuilder(Builder):' '    def build(self, project, ctx):' \
        '        for one in (project.get_server(), *project.get_clients()):' \
        '            Path(ctx.get_kit_dir(one), "server_context.tenseal").write_text("context")'
    cd "$folder" || return
    HOME=$SCRATCH PYTHONPATH=$ROOT/src/python PYTHONDONTWRITEBYTECODE=1 "$venv/bin/nvflare" provision -p project.yml 2>&1 </dev/null
}

built_kits() { # NVFLARE_VERSION: prints the folder of server1, site-1 ...
    local folder=$SCRATCH/built-$1 output
    [ -d "$folder" ] || output=$(provision "$1" "$folder" WorkspaceBuilder StaticFileBuilder ContextBuilder FlarenaBuilder \
        CertBuilder SignatureBuilder) || give_up $? "$output"
    echo "$folder/workspace/example_project/prod_00"
}

verifies() { # KIT: with the kit's own hooks and library at work, and nothing that keeps Python from writing files
    local startup=$1/startup folder
    for folder in startup local; do
        without_preload -u PYTHONDONTWRITEBYTECODE LD_PRELOAD="$startup/$multiarch/libflarena.so" FLARENA_LOG=off \
            PYTHONPATH="$startup/flarena.zip/flarena/hooks" FLARENA_ALLOCATOR=jemalloc "$ROOT/build/venv-$version/bin/python" \
            -m nvflare.tool.verify_startup_kits -f "$1/$folder" -c "$startup/rootCA.pem" || return 1
    done
}
is_signed() { # NVFLARE_VERSION: the kits verify, also after a start; a changed library does not
    local kits kit
    kits=$(built_kits "$1") || give_up $? "$kits"
    for kit in "$kits/server1" "$kits/site-1"; do
        [ "$(find "$kit/startup" -name libflarena.so | wc -l)" -eq 2 ]
        verifies "$kit"
        verifies "$kit"
    done
    cp -a "$kits/site-1" "$SCRATCH/changed-$1"
    echo >>"$SCRATCH/changed-$1/startup/$multiarch/libflarena.so"
    ! verifies "$SCRATCH/changed-$1"
}

are_small() { # NVFLARE_VERSION: also the library that cargo has built with debug information
    local kits
    kits=$(built_kits "$1") || give_up $? "$kits"
    [ "$(stat -c %s "$library")" -gt 4000000 ] || give_up 77 "the library under test has no debug information"
    find "$kits" -name libflarena.so -size +4M | tee "$SCRATCH/large"
    [ ! -s "$SCRATCH/large" ]
}
needs_objcopy() { # a PATH without objcopy
    local output status=0
    [ "$(stat -c %s "$library")" -gt 4000000 ] || give_up 77 "the library under test has no debug information"
    mkdir -p "$SCRATCH/no-objcopy"
    output=$(PYTHONPATH=$ROOT/src/python PATH=$SCRATCH/no-objcopy "$ROOT/build/venv-2.9.0/bin/python" -c '
import pathlib, sys
from flarena.provision import _copy_stripped
_copy_stripped(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))' "$library" "$SCRATCH/no-objcopy/copy.so" 2>&1) || status=$?
    printf '%s\n' "$output"
    [ "$status" -ne 0 ] && [ ! -e "$SCRATCH/no-objcopy/copy.so" ] && [[ $output == *"RuntimeError: $library contains debug information"*"install binutils"* ]]
}
outside_launch() { # NVFLARE_VERSION: below a process that a launcher has started, without LD_PRELOAD
    start_built "$1" site-1 NVFLARE_ENABLE_JEMALLOC_PRELOAD=true FLARENA_LAUNCHED=1
}

mkdir -p "$SCRATCH/built-bin" "$SCRATCH/musl-bin" "$SCRATCH/other-bin"
# A python3 that prints its environment, without /bin/sh.
# shellcheck disable=SC2016  # the programs expand these
printf '%s\n' '#!/usr/bin/env bash' 'for name in LD_PRELOAD MALLOC_ARENA_MAX FLARENA_ROLE PYTHONPATH; do echo "seen: $name=${!name:-}"; done' \
    'echo "seen: $3"' >"$SCRATCH/built-bin/python3"
# shellcheck disable=SC2016
printf '%s\n' '#!/bin/sh' '[ "$1" = -m ] && echo riscv64 || echo Linux' >"$SCRATCH/other-bin/uname"
chmod +x "$SCRATCH/built-bin/python3" "$SCRATCH/other-bin/uname"

start_built() { # NVFLARE_VERSION SITE [NAME=VALUE...]: prints what the kit's python3 sees, and lines from flarena
    local kits
    kits=$(built_kits "$1") || give_up $? "$kits"
    without_preload -u PYTHONPATH PATH="${FIRST_IN_PATH:-}$SCRATCH/built-bin:$PATH" "${@:3}" "$kits/$2/startup/sub_start.sh" --once 2>&1 |
        shown "$kits/$2"
}
shown() { # KIT: of the input, what the kit's python3 has seen, and lines from flarena but the one that names the library
    sed -e '/^WORKSPACE\|^PYTHONPATH is\|^Start NVFlare\|^flarena: preloading /d' -e 's/^seen: //' -e "s,$1/startup,STARTUP,g"
}
on_another_machine() { FIRST_IN_PATH=$SCRATCH/other-bin: start_built "$1" site-1 FLARENA_ALLOCATOR=glibc; }
by_outer_flarena() { # NVFLARE_VERSION
    local kits
    kits=$(built_kits "$1") || give_up $? "$kits"
    start PATH="$SCRATCH/built-bin:$PATH" NVFLARE_ENABLE_JEMALLOC_PRELOAD=true -- "$kits/site-1/startup" --once 2>&1 | shown "$kits/site-1"
}
on_musl() { # NVFLARE_VERSION: /bin/sh is a program for musl
    need musl-gcc musl-tools || give_up 77 "musl-tools cannot be installed"
    built_kits "$1" >"$SCRATCH/built" || give_up $? "$(cat "$SCRATCH/built")"
    unshare --mount true 2>/dev/null || give_up 77 "no mount namespace"
    echo 'int main(void) { return 0; }' | musl-gcc -o "$SCRATCH/musl-bin/shell" -x c -
    cp "$(command -v dash)" "$SCRATCH/musl-bin/sh"
    export -f start_built shown built_kits give_up without_preload clean_environment
    # shellcheck disable=SC2016  # the inner shell expands
    FIRST_IN_PATH=$SCRATCH/musl-bin: unshare --mount bash -c 'mount --bind "$0/shell" "$(readlink -f /bin/sh)"
        start_built "$1" site-1 NVFLARE_ENABLE_JEMALLOC_PRELOAD=true' "$SCRATCH/musl-bin" "$1"
}
sees() { # PRELOAD ARENAS ROLE HOOKS MODULE
    printf 'LD_PRELOAD=%s\nMALLOC_ARENA_MAX=%s\nFLARENA_ROLE=%s\nPYTHONPATH=/local/custom:%s\nnvflare.private.fed.app.%s' "$@"
}
is_refused() { # TEXT BUILDER...: NVFlare fails, and its output has this text
    local output status=0
    output=$(provision 2.9.0 "$SCRATCH/refused" "${@:2}") || status=$?
    rm -rf "$SCRATCH/refused"
    printf '%s\n' "$output"
    [ "$status" -eq 77 ] || { [ "$status" -ne 0 ] && [[ $output == *"$1"* ]]; }
}

kit_library=STARTUP/$multiarch/libflarena.so
kit_hooks=STARTUP/flarena.zip/flarena/hooks
for version in 2.7.2 2.9.0; do
    check "NVFlare $version verifies kits with flarena, also when its hooks run from them, and refuses a changed library" is_signed "$version"
    check_output "NVFlare's switch starts a built client kit of $version on its library, with 2 arenas" \
        "$(sees "$kit_library" 2 client "$kit_hooks" client.client_train)" start_built "$version" site-1 NVFLARE_ENABLE_JEMALLOC_PRELOAD=true
    check_output "FLARENA_ALLOCATOR=glibc starts a built server kit of $version on its library, with 4 arenas" \
        "$(sees "$kit_library" 4 server "$kit_hooks" server.server_train)" start_built "$version" server1 FLARENA_ALLOCATOR=glibc
    for setting in A=unset NVFLARE_ENABLE_JEMALLOC_PRELOAD=false; do
        check_output "with $setting a built kit of $version starts as NVFlare's own does" \
            "$(sees '' 4 '' '' client.client_train)" start_built "$version" site-1 $setting
    done
    check_output "a built kit of $version starts on musl with one line" \
        $'flarena: /bin/sh uses musl, not glibc; starting without flarena\n'"$(sees '' 4 client '' client.client_train)" on_musl "$version"
    check_output "a built kit of $version without a library for the machine starts with one line" \
        "flarena: libflarena.so was not found for riscv64 (FLARENA_LIB can name it); starting with the system's malloc"$'\n'"$(sees '' 2 client '' client.client_train)" \
        on_another_machine "$version"
done
check_output "a built kit that an outer flarena starts keeps the outer library" \
    "$(sees "$library" 2 client "$SCRATCH/plain/hooks" client.client_train)" by_outer_flarena 2.9.0
check_output "a built kit loads its library below a process that a launcher has started, if LD_PRELOAD is lost" \
    "$(sees "$kit_library" 2 client "$kit_hooks" client.client_train)" outside_launch 2.9.0
check "the libraries of a built kit have no debug information" are_small 2.9.0
check "a library with debug information is refused without objcopy" needs_objcopy
check "FlarenaBuilder before StaticFileBuilder is refused" is_refused "move FlarenaBuilder behind StaticFileBuilder" \
    WorkspaceBuilder FlarenaBuilder StaticFileBuilder CertBuilder SignatureBuilder
check "FlarenaBuilder after SignatureBuilder is refused" is_refused "move FlarenaBuilder before SignatureBuilder" \
    WorkspaceBuilder StaticFileBuilder ContextBuilder CertBuilder SignatureBuilder FlarenaBuilder
