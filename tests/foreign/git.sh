# shellcheck shell=bash
# git commits, packs, clones and checks the same repository

prepare() { need git; }

work() { # COMMITS
    local i
    export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' GIT_CONFIG_GLOBAL=/dev/null
    export GIT_AUTHOR_NAME=tester GIT_AUTHOR_EMAIL=tester@example.invalid GIT_COMMITTER_NAME=tester GIT_COMMITTER_EMAIL=tester@example.invalid
    git init -q -b main repository && cd repository || return
    for i in $(seq "$1"); do
        seq "$i" "$((i * 997 % 50000 + 10))" >"file$((i % 40))"
        head -c $((i * 100000 % 6000000)) /dev/zero | tr '\0' "$((i % 10))" >large
        git add . && git commit -q -m "commit $i" || return
    done
    git rev-parse HEAD
    git -c pack.threads=4 -c core.bigFileThreshold=64m repack -adfq --window=20 --depth=20
    git fsck --full 2>&1
    git -c protocol.file.allow=always clone -q --no-local . ../clone && git -C ../clone rev-parse HEAD
    git -C ../clone log --stat | md5sum
    git blame file3 | md5sum
    git -c grep.threads=4 grep -c 77 HEAD | md5sum
    git archive HEAD | md5sum
    git bundle create -q ../bundle --all && git bundle verify -q ../bundle && echo verified
}

short() { work 12; }
whole() { work 1000; }
