//! Defaults and limits outside the settings table, each with its reason.

/// glibc arenas of a client. It has one job and few threads that allocate; more arenas would only
/// hold more free memory.
pub const ARENAS_CLIENT: u32 = 2;
/// glibc arenas of a server, which serves many clients at once. NVFlare uses the same value.
pub const ARENAS_SERVER: u32 = 4;

/// jemalloc's decay: the options that NVFlare documents. Five seconds are longer than the gap
/// between the steps of a round, so training does not fault the same pages in at each step.
pub const MALLOC_CONF: &str = "dirty_decay_ms:5000,muzzy_decay_ms:5000";

/// Added in jemalloc mode if every program gets huge pages. With them a heap of small blocks is
/// resident in steps of 2 MiB.
pub const MALLOC_CONF_THP_ALWAYS: (&str, &str) = ("thp", "never");

/// Added in jemalloc mode under RLIMIT_AS or RLIMIT_DATA. Otherwise jemalloc keeps the addresses of
/// freed extents, and none are left for large blocks.
pub const MALLOC_CONF_LIMITED: (&str, &str) = ("retain", "false");

/// Added in jemalloc mode if jemalloc's pages have 4 KiB (x86_64). By default these size classes
/// have slabs of 5 or 7 pages with 8 to 16 blocks. Slabs of one or two pages are kept by fewer live
/// blocks; docs/design/tuning.md.
pub const MALLOC_CONF_SMALL_SLABS: (&str, &str) = (
    "slab_sizes",
    "1280-1280:1|1792-1792:1|2560-2560:2|3584-3584:1",
);

/// Used in glibc mode, where jemalloc serves nothing. If a call of one of its functions initializes
/// it anyway, these options keep its cost near zero.
pub const MALLOC_CONF_DORMANT: &str = "narenas:1,tcache:false,background_thread:false";

/// jemalloc creates four arenas per core of the host. flarena applies the same factor to the cores
/// of the container's CPU quota.
pub const ARENAS_PER_CPU: u32 = 4;

/// Smallest value of `FLARENA_RECYCLE_MIN`. Smaller requests never leave malloc's fast path. The
/// recycler's unit is 2 MiB, independent of this value.
pub const RECYCLE_MIN_BYTES_LOWEST: u64 = 64 << 10;

/// The governor's thread starts when a process first holds this much memory. A shell stays below.
pub const GOVERNOR_START_BYTES: u64 = 64 << 20;
/// The governor also starts when large blocks hold this much, because freed ones are cached and
/// must decay.
pub const GOVERNOR_START_LARGE_BYTES: u64 = 32 << 20;
/// It also starts when this much is cached. A smaller cache may stay in a process without a
/// governor.
pub const GOVERNOR_START_CACHED_BYTES: u64 = 16 << 20;

/// Programs that scripts start by the thousand. The library writes no `load` and `exit` markers for
/// them.
pub const HELPERS: [&str; 56] = [
    "awk", "basename", "bash", "cat", "chmod", "cp", "cut", "dash", "date", "dirname", "echo",
    "egrep", "env", "expr", "false", "find", "gawk", "grep", "head", "hostname", "id", "kill",
    "ln", "ls", "mawk", "mkdir", "mkfifo", "mktemp", "mv", "nproc", "paste", "printf", "ps", "pwd",
    "readlink", "realpath", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat", "tail",
    "tee", "test", "touch", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs",
];
