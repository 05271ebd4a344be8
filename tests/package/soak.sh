#!/usr/bin/env bash
# The blocks of README's part "Install" work when they are pasted in order, on Debian and on Ubuntu without any other
# package. debootstrap makes the roots; Rust and its crates are this machine's.
#
#   UBUNTU_SITE=URL tests/package/soak.sh     both releases, with this archive of Ubuntu
#   tests/package/soak.sh bookworm            this one
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/lib.sh
. tests/lib.sh
# shellcheck source=scripts/arm64/root.sh
. scripts/arm64/root.sh # package_site

bare=$ROOT/build/bare
CLONE=/srv/flarena

strap() { # RELEASE SITE [SCRIPT]
    debootstrap --variant=minbase --include=ca-certificates "$1" "$bare/root" "${@:2}" >"$bare/log" 2>&1 && return
    tail -n 5 "$bare/log"
    return 1
}

make_bare_root() { # RELEASE
    local site
    [ "$(id -u)" -eq 0 ] || { echo "debootstrap needs root" && exit 77; }
    need debootstrap || { echo "debootstrap cannot be installed" && exit 77; }
    rm -rf --one-file-system "$bare"
    mkdir -p "$bare"
    if [ "$1" = bookworm ]; then
        strap "$1" "$(package_site)"
        # The package indexes of this machine.
        rm -f "$bare/root/etc/apt/sources.list"
        cp -rL /etc/apt/. "$bare/root/etc/apt"
    else
        site=${UBUNTU_SITE-}
        [ -n "$site" ] || { echo "UBUNTU_SITE names no archive of Ubuntu" && exit 77; }
        # One script makes each Ubuntu since 7.10; Debian's debootstrap does not know the names of later releases.
        strap "$1" "$site" gutsy
        printf 'deb %s %s main universe\n' "$site" "$1" "$site" "$1-updates" >"$bare/root/etc/apt/sources.list"
    fi
    cp -L /etc/ssl/certs/ca-certificates.crt "$bare/root/etc/ssl/certs/"
    cp -L /etc/resolv.conf /etc/hosts "$bare/root/etc/"
    [ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$bare/root/etc/"
    mkdir -p "$bare/root/root/.cargo" "$bare/root/root/.rustup"
    git clone --quiet --no-hardlinks . "$bare/root$CLONE"
    # With the changes that no commit has.
    git ls-files -co --exclude-standard -z | xargs -0 tar -c --ignore-failed-read | tar -x -C "$bare/root$CLONE"
}

# The indented lines of the part.
blocks() {
    sed -n '/^## Install/,/^## /s/^    //p' README.md
}

in_bare_root() { # the script on stdin, in the clone
    # The mounts end with the namespace.
    # shellcheck disable=SC2016  # the inner shell expands them
    unshare --mount --pid --fork --kill-child -- bash -c '
        set -e
        mount --make-rprivate /
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        mount --rbind /dev "$0/dev"
        mount --bind "${CARGO_HOME:-$HOME/.cargo}" "$0/root/.cargo"
        mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$0/root/.rustup"
        exec chroot "$0" env -i PATH=/root/.cargo/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive bash -c "cd $1 && . /dev/stdin"' "$bare/root" "$CLONE"
}

pasted() {
    { echo 'set -e; apt-get -q update'; blocks; } | in_bare_root
}
from_git_url() {
    in_bare_root <<'END'
set -e
git add .
git -c user.name=test -c user.email=test@localhost commit -q --allow-empty -m test
python3 -m venv /root/from-git
/root/from-git/bin/pip install "git+file://$PWD"
/root/from-git/bin/flarena run -- /root/from-git/bin/python -c 'import flarena; assert flarena.loaded()'
END
}
from_sdist() {
    in_bare_root <<'END'
set -e
python3 -m venv /root/from-sdist
/root/from-sdist/bin/pip install build/dist/flarena-*.tar.gz
/root/from-sdist/bin/flarena run -- /root/from-sdist/bin/python -c 'import flarena; assert flarena.loaded()'
END
}
installed() { # PATH of a file in the root
    [ -s "$bare/root$1" ]
}
has_all_files() {
    cd "$bare/root$CLONE/build/dist"
    ls -- *.whl *.deb *.tar.gz *.cdx.json
    sha256sum --check SHA256SUMS
    [ "$(wc -l <SHA256SUMS)" -eq "$(find . -type f ! -name SHA256SUMS | wc -l)" ]
}
# zig records its working directory in the debug file, whose checksum is in the library.
same_bytes_as_here() {
    local built
    built=build/release/$(uname -m)/libflarena.so
    scripts/build-release.sh --library "$(uname -m)"
    objcopy --remove-section=.gnu_debuglink "$built" "$SCRATCH/here.so"
    objcopy --remove-section=.gnu_debuglink "$bare/root$CLONE/$built" "$SCRATCH/there.so"
    cmp "$SCRATCH/here.so" "$SCRATCH/there.so"
}

has_commands() { [ "$(blocks | wc -l)" -ge 6 ]; }
check "README's part Install has several commands" has_commands
[ $# -gt 0 ] || set -- bookworm noble
for release; do
    check "$release: debootstrap makes a bare root" make_bare_root "$release"
    [ -d "$bare/root$CLONE" ] || continue
    check "$release: each line of README's part Install works on the bare root" pasted
    check "$release: pip has installed the command" installed /root/flarena-venv/bin/flarena
    check "$release: apt has installed the command" installed /usr/bin/flarena
    check "$release: release.sh has made an SBOM and checksums of all files" has_all_files
    check "$release: the library built there has the same bytes as here, except the checksum of its debug file" same_bytes_as_here
    # They compile once more.
    [ "$release" != "$1" ] || check "$release: pip installs a git URL" from_git_url
    [ "$release" != "$1" ] || check "$release: pip installs the source distribution" from_sdist
    rm -rf --one-file-system "$bare"
done
finish
