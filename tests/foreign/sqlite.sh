# shellcheck shell=bash
# sqlite gives the same answers from memory and from a file

prepare() { need sqlite3; }

work() { # ROWS
    local database
    for database in :memory: file; do
        sqlite3 "$database" <<END
pragma cache_size = -65536;
create table t (a integer primary key, b text, c blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < $1)
    insert into t select i, 'text ' || (i * 7919 % 100003), zeroblob(i % 997) from n;
create index t_b on t (b);
select count(*), sum(a), sum(length(c)), min(b), max(b) from t;
select length(group_concat(b, ',')) from (select b from t order by b desc);
update t set c = zeroblob(100000) where a % 1000 = 0;
delete from t where a % 3 = 0;
select count(*), sum(length(c)) from t;
select x.b, count(*) from t x join t y on x.b = y.b group by x.b order by 2 desc, 1 limit 3;
select length(zeroblob(200000000));
vacuum;
pragma integrity_check;
END
        echo "$database ends with $?"
    done
    sqlite3 file .dump | md5sum
}

short() { work 40000; }
whole() { work 3000000; }
