# shellcheck shell=bash
# The programs of the suite: functions whose output is the same each time. A program NAME is run where COMMAND exists.
# Compilers, git, node, numpy and sqlite are in tests/foreign.
# shellcheck disable=SC2034 # run.sh reads it
# NAME:COMMAND
PROGRAMS_TO_RUN=(bash:bash perl:perl python:python3 python_threads:python3 python_processes:python3 java:java
    text_tools:sort archivers:tar make:make rust:rustc)

program_bash() {
    local words=() i
    declare -A count
    for ((i = 0; i < 20000; i++)); do
        words+=("word$((i * 7919 % 1000))")
        count[${words[i]}]=$((${count[${words[i]}]-0} + 1))
    done
    printf '%s\n' "${words[@]}" | sort | uniq -c | sort -rn | head -n 3
    echo "${#count[@]} $(printf '%s' "${words[@]}" | wc -c) $(seq 100000 | tail -n 1)"
    (exit 3) || echo "status $?"
}

program_perl() {
    perl -e '
        my %count; my @list;
        for my $i (1 .. 200000) { $count{$i % 977} .= "x"; push @list, "item $i" if $i % 3 == 0 }
        my $text = join ",", @list; $text =~ s/item (\d)/$1/g;
        print length($text), " ", scalar(keys %count), " ", length($count{5}), "\n";
        my $big = "y" x (40 << 20); $big .= "z" x (10 << 20); print length($big), "\n";
        defined(my $pid = fork) or die; if ($pid == 0) { my @child = (1) x 100000; exit 5 } wait; print $? >> 8, "\n";'
}

program_python() {
    python3 - <<'END'
import array, bz2, collections, gc, hashlib, io, json, pickle, re, sqlite3, zlib
text = " ".join(f"word{i * 7919 % 5000}" for i in range(300000))
print(collections.Counter(text.split()).most_common(3), len(re.sub(r"word(\d)", r"\1", text)))
blob = pickle.dumps({f"layer{i}": array.array("d", range(200000)) for i in range(10)})
print(len(blob), hashlib.sha256(zlib.decompress(zlib.compress(blob, 1))).hexdigest())
buffer = io.BytesIO()
for i in range(40):
    buffer.write(bytes([i]) * (1 << 20))
print(hashlib.md5(buffer.getvalue()).hexdigest(), len(bz2.compress(text.encode())))
database = sqlite3.connect(":memory:")
database.execute("create table t (a, b)")
database.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(50000)))
print(database.execute("select sum(a), max(b) from t").fetchone(), len(json.dumps(list(range(100000)))), gc.collect() >= 0)
END
}

program_python_threads() {
    python3 - <<'END'
import concurrent.futures, hashlib, threading
def work(seed):
    blocks = [bytearray(bytes([seed % 256])) * (seed % 7 * 300000 + 1000) for _ in range(5)]
    return hashlib.md5(b"".join(blocks)).hexdigest()
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    results = list(pool.map(work, range(150)))
print(hashlib.md5("".join(results).encode()).hexdigest(), threading.active_count())
END
}

program_python_processes() {
    cat >processes.py <<'END'
import multiprocessing, os, subprocess, sys
def work(seed):
    return sum(bytearray(bytes([seed])) * (1 << 20))
if __name__ == "__main__":
    held = bytearray(30 << 20)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sum(pool.map(work, range(12))))
    print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout)
    print(os.system("exit 2") >> 8, len(held))
END
    python3 processes.py
}

program_java() {
    mkdir -p classes
    cat >Program.java <<'END'
import java.util.*;
import java.util.stream.*;
public class Program {
    public static void main(String[] arguments) throws Exception {
        Map<String, List<Integer>> map = new TreeMap<>();
        for (int i = 0; i < 200000; i++) map.computeIfAbsent("key" + i % 1000, k -> new ArrayList<>()).add(i);
        java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(50 << 20);
        for (int i = 0; i < direct.capacity(); i += 4096) direct.put(i, (byte) i);
        java.util.zip.CRC32 sum = new java.util.zip.CRC32();
        sum.update(direct);
        System.out.println(map.size() + " " + sum.getValue() + " " + IntStream.range(0, 1000000).parallel().sum());
    }
}
END
    if command -v javac >/dev/null; then javac -d classes Program.java && java -cp classes Program; else java -version 2>/dev/null; fi
}

program_text_tools() {
    seq 300000 | awk '{ print ($1 * 7919) % 300007, "line", $1 }' >lines
    sort -n --parallel=4 lines | md5sum
    sort -k3 -u lines | sed 's/line/LINE/g' | grep -c '9 LINE'
    tr 0-9 a-j <lines | rev | cut -c 1-10 | sort | uniq -c | sort -rn | head -n 2
    diff <(head -n 50000 lines) <(tail -n +100 lines | head -n 50000) | tail -n 1
    join <(sort lines) <(sort lines) | wc -l
    find /etc -maxdepth 1 -name 'pass*' 2>/dev/null | sort | head -n 3
}

program_archivers() {
    seq 400000 >numbers
    tar --sort=name --mtime=@0 --owner=0 --group=0 -czf - numbers | tar -xzO | md5sum
    gzip -9 <numbers | gunzip | md5sum
    command -v bzip2 >/dev/null && bzip2 <numbers | bunzip2 | md5sum
    command -v xz >/dev/null && xz -T2 -3 <numbers | xz -d | md5sum
    command -v zstd >/dev/null && zstd -q -T2 <numbers | zstd -qd | md5sum
    true
}

program_make() {
    printf 'all: %s\n%%.out:\n\t@echo $@ > $@\n' "$(printf '%s.out ' $(seq 50))" >Makefile
    make -s -j8 && cat ./*.out | md5sum
}

program_rust() {
    echo 'fn main() { let v: Vec<u64> = (0..1_000_000).map(|x| x * x).collect(); println!("{}", v.iter().sum::<u64>()); }' >program.rs
    rustc -O program.rs -o program && ./program
}
