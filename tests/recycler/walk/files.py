"""For gdb: prints `FUNCTION FILE` for each source file of the library that `allocate` and `release` of pair.c pass through."""

import gdb

WARM_PAIRS = 200
MOST_STEPS = 20_000


def walk(function):
    gdb.execute(f"tbreak {function}", to_string=True)
    gdb.execute("continue", to_string=True)
    end = gdb.newest_frame().older().pc()
    files = set()
    for _ in range(MOST_STEPS):
        at = gdb.newest_frame().pc()
        if at == end:
            break
        table = gdb.find_pc_line(at).symtab
        name = table.fullname() if table else ""
        if "/src/" in name and "/.cargo/" not in name and "/rustc/" not in name:
            files.add(name.rpartition("/src/")[2])
        gdb.execute("stepi", to_string=True)
    else:
        raise gdb.GdbError(f"{function} has not ended")
    for name in sorted(files):
        print(function, name)


gdb.execute("set pagination off")
gdb.execute("set debuginfod enabled off")
gdb.execute("set startup-with-shell off")
gdb.execute("break pair", to_string=True)
gdb.execute("run", to_string=True)
gdb.execute(f"ignore 1 {WARM_PAIRS - 1}", to_string=True)
gdb.execute("continue", to_string=True)
walk("allocate")
# The next pair's block: a free searches a block that lived a second for guard regions.
gdb.execute("continue", to_string=True)
walk("release")
gdb.execute("kill")
