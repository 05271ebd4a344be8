# shellcheck shell=bash
# The programs of the suite: functions whose output is the same each time. A program NAME is run where COMMAND exists.
# shellcheck disable=SC2034 # run.sh reads it
# NAME:COMMAND
PROGRAMS_TO_RUN=(bash:bash git:git perl:perl c_compiler:gcc cpp_compiler:g++ python:python3 python_threads:python3
    python_processes:python3 numpy:python3 node:node java:java text_tools:sort archivers:tar sqlite:sqlite3 make:make rust:rustc)

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

program_git() {
    export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
    git init -q -b main repository && cd repository || return
    git config user.name tester && git config user.email tester@example.invalid
    local i
    for i in $(seq 20); do
        seq "$i" "$((i * 1000))" >"file$i"
        git add . && git commit -q -m "commit $i" || return
    done
    git log --format='%h %s' | md5sum
    git gc -q && git fsck 2>/dev/null && git diff HEAD~5 --stat | tail -n 1
    git blame file3 | tail -n 1 && git archive HEAD | md5sum
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

program_c_compiler() {
    printf '#include <stdio.h>\n#include <stdlib.h>\n' >program.c
    local i
    for i in $(seq 300); do echo "static int f$i(int x) { return x * $i + (x >> 3) % $i; }"; done >>program.c
    { echo 'int main(void) { int x = 1;'; for i in $(seq 300); do echo "x = f$i(x);"; done; echo 'return printf("%d", x) < 0; }'; } >>program.c
    gcc -O2 -Wall -fwrapv program.c -o program && ./program && objdump -d program | tail -n +4 | md5sum
}

program_cpp_compiler() {
    cat >program.cpp <<'END'
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> numbers;
    for (int i = 0; i < 100000; i++) numbers["key" + std::to_string(i % 1000)].push_back(i);
    std::ostringstream text;
    for (auto &entry : numbers) text << entry.first << entry.second.size();
    std::cout << text.str().size() << ' ' << std::regex_replace(text.str(), std::regex("key(\\d)"), "$1").size() << '\n';
}
END
    g++ -O1 program.cpp -o program && ./program
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

program_numpy() {
    "$NUMPY_PYTHON" - <<'END'
import numpy
a = numpy.arange(3_000_000, dtype=numpy.float64).reshape(3000, 1000)
for _ in range(5):
    b = (a @ numpy.eye(1000)) * 2 + a
    b.resize((2000, 1000), refcheck=False)
print(float(b.sum()), b.shape, numpy.concatenate([a, a]).shape, float(numpy.sort(a, axis=None)[-1]))
END
}

program_node() {
    node -e '
        const crypto = require("crypto"), zlib = require("zlib");
        const words = []; for (let i = 0; i < 200000; i++) words.push("word" + (i * 7919 % 5000));
        const buffer = Buffer.alloc(60 << 20, "x"), packed = zlib.gzipSync(buffer);
        console.log(words.join(" ").length, new Set(words).size, zlib.gunzipSync(packed).length);
        console.log(crypto.createHash("sha256").update(buffer).digest("hex"));
        const { Worker } = require("worker_threads");
        new Worker("require(\"worker_threads\").parentPort.postMessage(new Uint8Array(20 << 20).length)", { eval: true })
            .on("message", (length) => console.log("worker", length));'
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

program_sqlite() {
    sqlite3 :memory: 'with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000)
        select count(*), sum(i), group_concat(i % 7) is not null from n; select length(zeroblob(30000000));'
}

program_make() {
    printf 'all: %s\n%%.out:\n\t@echo $@ > $@\n' "$(printf '%s.out ' $(seq 50))" >Makefile
    make -s -j8 && cat ./*.out | md5sum
}

program_rust() {
    echo 'fn main() { let v: Vec<u64> = (0..1_000_000).map(|x| x * x).collect(); println!("{}", v.iter().sum::<u64>()); }' >program.rs
    rustc -O program.rs -o program && ./program
}
