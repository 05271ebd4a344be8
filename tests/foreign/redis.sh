# shellcheck shell=bash
# redis has the same data after its benchmark, a save in a forked child, and a restart

prepare() {
    need redis-server
    need redis-cli redis-tools
}

ask() { redis-cli -s "$WORK/socket" "$@"; }

start() {
    redis-server --port 0 --unixsocket "$WORK/socket" --dir "$WORK" --save '' --appendonly no --enable-debug-command yes --daemonize no >>log 2>&1 &
    SERVER=$!
    for _ in $(seq 600); do
        [ "$(ask ping 2>/dev/null)" = PONG ] && return
        sleep 0.1
    done
    echo "redis does not answer"
    exit 1
}

stop() {
    ask shutdown "$1" >/dev/null
    wait "$SERVER"
    echo "the server ends with $?"
}

work() { # KEYS
    start
    seq "$1" | awk '{ print "set key" $1, "value" $1 * $1; print "rpush list" $1 % 100, $1; print "append long" $1 % 10, $1 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }' |
        ask --pipe >/dev/null
    ask eval "redis.call('set', 'large', string.rep('x', 20000000)) for i = 1, 50 do redis.call('setrange', 'large', i * 1000000, i) end return redis.call('strlen', 'large')" 0
    ask debug populate "$1" filler 500
    ask dbsize
    ask debug digest
    ask bgsave
    # While the child saves. flushall would end it.
    seq "$1" | awk '{ print "set key" $1, "changed" }' | ask --pipe >/dev/null
    for _ in $(seq 600); do
        ask info persistence | grep -q 'rdb_bgsave_in_progress:0' && break
        sleep 0.1
    done
    ask info persistence | tr -d '\r' | grep rdb_last_bgsave_status
    ask flushall async
    ask dbsize
    stop nosave
    start
    ask dbsize
    ask debug digest
    redis-benchmark -s "$WORK/socket" -q -n "$1" -r 1000 -t set,get,lpush,lrange_100 -d 3000 --threads 2 >>log 2>&1
    echo "the benchmark ends with $?"
    ask config set activedefrag yes >>log 2>&1
    ask memory purge >>log 2>&1
    ask flushall
    stop nosave
}

short() { work 5000; }
whole() { work 1000000; }
