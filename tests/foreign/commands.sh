# shellcheck shell=bash
# common commands print the same, with the same exit status and the same errors
# Compilers, git, node, Python and sqlite have scripts of their own.

COMMANDS=(bash perl java sort tar make rustc)

prepare() {
    local command
    need perl
    for command in "${COMMANDS[@]}"; do command -v "$command" >/dev/null || echo "without $command"; done
}

short() {
    local command failed=
    for command in "${COMMANDS[@]}"; do
        ! command -v "$command" >/dev/null || with_"$command" 2>&1 || failed+=" $command"
    done
    [ -z "$failed" ] || { echo "these fail:$failed" && return 1; }
}
whole() { short; }

with_bash() {
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

with_perl() {
    perl -e '
        my %count; my @list;
        for my $i (1 .. 200000) { $count{$i % 977} .= "x"; push @list, "item $i" if $i % 3 == 0 }
        my $text = join ",", @list; $text =~ s/item (\d)/$1/g;
        print length($text), " ", scalar(keys %count), " ", length($count{5}), "\n";
        my $big = "y" x (40 << 20); $big .= "z" x (10 << 20); print length($big), "\n";
        defined(my $pid = fork) or die; if ($pid == 0) { my @child = (1) x 100000; exit 5 } wait; print $? >> 8, "\n";'
}

with_java() {
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

with_sort() {
    seq 300000 | awk '{ print ($1 * 7919) % 300007, "line", $1 }' >lines
    sort -n --parallel=4 lines | md5sum
    sort -k3 -u lines | sed 's/line/LINE/g' | grep -c '9 LINE'
    tr 0-9 a-j <lines | rev | cut -c 1-10 | sort | uniq -c | sort -rn | head -n 2
    diff <(head -n 50000 lines) <(tail -n +100 lines | head -n 50000) | tail -n 1
    join <(sort lines) <(sort lines) | wc -l
    find /etc -maxdepth 1 -name 'pass*' 2>/dev/null | sort | head -n 3
}

with_tar() {
    seq 400000 >numbers
    tar --sort=name --mtime=@0 --owner=0 --group=0 -czf - numbers | tar -xzO | md5sum
    gzip -9 <numbers | gunzip | md5sum
    command -v bzip2 >/dev/null && bzip2 <numbers | bunzip2 | md5sum
    command -v xz >/dev/null && xz -T2 -3 <numbers | xz -d | md5sum
    command -v zstd >/dev/null && zstd -q -T2 <numbers | zstd -qd | md5sum
    true
}

with_make() {
    printf 'all: %s\n%%.out:\n\t@echo $@ > $@\n' "$(printf '%s.out ' $(seq 50))" >Makefile
    make -s -j8 && cat ./*.out | md5sum
}

with_rustc() {
    echo 'fn main() { let v: Vec<u64> = (0..1_000_000).map(|x| x * x).collect(); println!("{}", v.iter().sum::<u64>()); }' >program.rs
    rustc -O program.rs -o program && ./program
}
