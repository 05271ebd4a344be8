# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets release
# dpkg installs the Debian package below a separate root.

in_root() { # DPKG-OPTION...: this root has no package libc6; the machine's libc is used
    dpkg --root="$root" --force-depends --force-not-root --force-script-chrootless --log=/dev/null "$@"
}

package_runs() { # MODE
    local asked=false
    [ "$1" = glibc ] || asked=true
    without_preload PYTHONPATH="$root/usr/share/flarena/python" NVFLARE_ENABLE_JEMALLOC_PRELOAD=$asked "$root/usr/bin/flarena" run -- \
        python3 -c 'import flarena; print(flarena.allocator(), flarena.get_allocator_type())'
}

package_starts_kits() {
    mkdir -p "$SCRATCH/kit"
    # shellcheck disable=SC2016  # the kit expands it
    printf '#!/bin/sh\necho "${LD_PRELOAD#"$1"}"\n' >"$SCRATCH/kit/sub_start.sh"
    chmod +x "$SCRATCH/kit/sub_start.sh"
    without_preload FLARENA_LOG=off FLARENA_LIB="$root/usr/lib/$(uname -m)-linux-gnu/libflarena.so" "$root/usr/share/flarena/sub_start.sh" "$SCRATCH/kit" "$root"
}

completions_parse() {
    bash -n "$root/usr/share/bash-completion/completions/flarena"
    grep -q '^#compdef flarena' "$root/usr/share/zsh/vendor-completions/_flarena"
    grep -q '^complete -c flarena ' "$root/usr/share/fish/vendor_completions.d/flarena.fish"
}

manual_reads() {
    gzip -dc "$root/usr/share/man/man1/flarena.1.gz" >"$SCRATCH/flarena.1"
    grep -q '^[.]SH NAME' "$SCRATCH/flarena.1"
    grep -q 'flarena' "$SCRATCH/flarena.1"
}

same_deb() {
    cp build/dist/flarena_*_"$(dpkg --print-architecture)".deb "$SCRATCH/first.deb"
    scripts/build-deb.sh
    cmp "$SCRATCH/first.deb" build/dist/flarena_*_"$(dpkg --print-architecture)".deb
}

# Prints maintainer and address without and with those of the releaser. The package is then built again without them.
deb_origin() {
    local fields=(-f "build/dist/flarena_${version}_$(dpkg --print-architecture).deb" Maintainer Homepage)
    dpkg-deb "${fields[@]}"
    FLARENA_PROJECT_URL=https://forge.example/flarena/ FLARENA_MAINTAINER='A Name <a@forge.example>' scripts/build-deb.sh >"$SCRATCH/deb.log"
    dpkg-deb "${fields[@]}"
    scripts/build-deb.sh >"$SCRATCH/deb.log"
}

test_deb() {
    local deb mode version
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    command -v dpkg-deb >/dev/null || { skip "the Debian package works" "no dpkg here"; return; }
    root=$SCRATCH/root
    mkdir -p "$root"/var/lib/dpkg/{info,updates}
    : >"$root/var/lib/dpkg/status"
    check "the Debian package is built" scripts/build-deb.sh
    check "the Debian package has the same bytes when it is built again" same_deb
    check_output "the Debian package names the releaser's address and maintainer, and no other address" \
        $'Maintainer: The flarena maintainers\nMaintainer: A Name <a@forge.example>\nHomepage: https://forge.example/flarena' deb_origin
    deb=$(compgen -G "build/dist/flarena_*_$(dpkg --print-architecture).deb")
    check "dpkg installs the package" in_root --install "$deb"
    check "each installed file has the checksum of the package" in_root --verify flarena
    for mode in glibc jemalloc; do
        check_output "the installed command finds the installed library in $mode mode" "$mode $mode" package_runs "$mode"
    done
    check_output "the installed sub_start.sh starts a kit" "/usr/lib/$(uname -m)-linux-gnu/libflarena.so" package_starts_kits
    check_output "the builder for NVFlare's kits finds the installed launcher and library" \
        "$root/usr/share/flarena/sub_start.sh $(uname -m)=$root/usr/lib/$(uname -m)-linux-gnu/libflarena.so" \
        builder_finds python3 "$root/usr/share/flarena/python"
    check "bash, zsh and fish have completions" completions_parse
    check "the manual page is readable" manual_reads
    check "dpkg removes the package" in_root --purge flarena
    check_output "no file is left after the package is removed" "" find "$root" -iname '*flarena*' ! -path '*/var/lib/dpkg/*'
}
