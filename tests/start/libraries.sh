# shellcheck shell=bash disable=SC2154  # part of run.sh, which sets library
# Makes libraries that the loader or the job cannot use.

# ELF's e_machine is a byte at offset 18: 183 is aarch64, 62 is x86-64.
wrong_architecture() { # LIBRARY: a copy for another machine
    local machine='\267'
    [ "$(uname -m)" = x86_64 ] || machine='\076'
    objcopy --strip-unneeded "$library" "$1" # as shipped: only the objcopy of its machine could strip it later
    printf '%b' "$machine" | dd of="$1" bs=1 seek=18 conv=notrunc status=none
}

# Needs a symbol version that no glibc has yet, as a library built on a newer system does.
too_new() { # LIBRARY
    local dir=$SCRATCH/newer
    mkdir -p "$dir"
    echo 'int from_the_future(void) { return 0; }' >"$dir/libc.c"
    echo 'GLIBC_2.99 { from_the_future; };' >"$dir/libc.map"
    gcc -shared -nostdlib -o "$dir/libc.so.6" "$dir/libc.c" -Wl,-soname,libc.so.6 -Wl,--version-script="$dir/libc.map"
    echo 'int from_the_future(void); int flarena_needs(void) { return from_the_future(); }' >"$dir/lib.c"
    gcc -shared -fPIC -nostdlib -o "$1" "$dir/lib.c" "$dir/libc.so.6"
}

# A preload that loads, and is not flarena's library.
foreign() { # LIBRARY
    echo 'int foreign;' >"$SCRATCH/foreign.c"
    gcc -shared -fPIC -o "$1" "$SCRATCH/foreign.c"
}

crashing() { # LIBRARY
    echo 'void *nowhere; __attribute__((constructor)) static void crash(void) { *(volatile char *)nowhere = 1; }' >"$SCRATCH/crash.c"
    gcc -shared -fPIC -o "$1" "$SCRATCH/crash.c"
}
