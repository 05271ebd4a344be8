# shellcheck shell=bash
# the balances of postgres agree after pgbench

bin() {
    local directory
    for directory in /usr/lib/postgresql/*/bin; do :; done
    [ -x "$directory/initdb" ] && echo "$directory"
}

prepare() {
    [ -n "$(bin)" ] || need pg_ctlcluster postgresql
    [ -n "$(bin)" ] || cannot "no server of postgres is installed"
    [ "$(id -u)" -ne 0 ] || id postgres >/dev/null 2>&1 || cannot "postgres does not run as root, and there is no user postgres"
}

# Not su: for a setuid program the loader ignores LD_PRELOAD.
as_user() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid postgres --regid postgres --clear-groups env HOME="$WORK" "$@"
    else
        "$@"
    fi
}

ask() { as_user psql -h "$WORK" -p 5499 -d postgres -Atc "$1"; }

work() { # SCALE TRANSACTIONS
    local bin
    bin=$(bin)
    [ "$(id -u)" -ne 0 ] || chown postgres "$WORK"
    as_user "$bin/initdb" -D "$WORK/data" -A trust >log 2>&1 || { cat log; return 1; }
    as_user "$bin/pg_ctl" -D "$WORK/data" -w -t 120 -l "$WORK/server.log" \
        -o "-k $WORK -p 5499 -h '' -c fsync=off -c shared_buffers=64MB -c max_parallel_workers_per_gather=2" start >>log 2>&1 ||
        { cat log server.log; return 1; }
    as_user "$bin/pgbench" -h "$WORK" -p 5499 -i -q -s "$1" postgres >>log 2>&1
    echo "the start ends with $?"
    as_user "$bin/pgbench" -h "$WORK" -p 5499 -c 8 -j 2 -t "$2" --random-seed=1 postgres >>log 2>&1
    echo "pgbench ends with $?"
    ask 'select count(*), (select sum(abalance) from pgbench_accounts) = sum(delta), (select sum(tbalance) from pgbench_tellers) = sum(delta),
        (select sum(bbalance) from pgbench_branches) = sum(delta) from pgbench_history'
    ask "set work_mem = '64MB'; select count(*), length(string_agg(aid::text, ',' order by md5(aid::text))) from pgbench_accounts"
    ask "select length(repeat('x', 100000000)), count(*) from generate_series(1, 1000000)"
    as_user "$bin/pg_ctl" -D "$WORK/data" -w -m fast stop >>log 2>&1
    echo "the server ends with $?"
    grep -cE 'PANIC|terminated by signal' server.log
    true
}

short() { work 1 200; }
whole() { work 20 20000; }
