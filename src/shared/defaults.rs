//! The defaults that flarena applies beside those of the table of settings, each with its reason.

/// glibc arenas of a client: one job, few threads that allocate; more arenas only hold more.
pub const ARENAS_CLIENT: u32 = 2;
/// glibc arenas of a server: it talks to many clients at once. NVFlare's own value.
pub const ARENAS_SERVER: u32 = 4;

/// jemalloc's decay: NVFlare's documented options. Five seconds outlive the gap between the
/// steps of a round, so that training does not fault the same pages again and again.
pub const MALLOC_CONF: &str = "dirty_decay_ms:5000,muzzy_decay_ms:5000";

/// Added to the options in jemalloc mode where the system gives huge pages to everyone: there
/// a heap of small blocks would be resident in steps of 2 MiB.
pub const MALLOC_CONF_THP_ALWAYS: (&str, &str) = ("thp", "never");

/// Added in jemalloc mode under RLIMIT_AS or RLIMIT_DATA: jemalloc otherwise keeps the addresses
/// of what it freed, and a large block finds none left.
pub const MALLOC_CONF_LIMITED: (&str, &str) = ("retain", "false");

/// Added in jemalloc mode where jemalloc's pages are of 4 KiB (x86_64): the sizes whose usual slabs
/// hold 8 to 16 blocks over 5 or 7 pages get slabs of one or two, which fewer living blocks keep;
/// docs/design/tuning.md.
pub const MALLOC_CONF_SMALL_SLABS: (&str, &str) = (
    "slab_sizes",
    "1280-1280:1|1792-1792:1|2560-2560:2|3584-3584:1",
);

/// Where jemalloc's functions could not be hidden in glibc mode it wakes; these options make it cost next to nothing.
pub const MALLOC_CONF_DORMANT: &str = "narenas:1,tcache:false,background_thread:false";

/// jemalloc's own rule is four arenas for each core that it may use. It counts the host's cores;
/// flarena counts the container's.
pub const ARENAS_PER_CPU: u32 = 4;

/// Smallest value that `FLARENA_RECYCLE_MIN` takes: smaller requests never leave malloc's hot path.
/// What the recycler moves are units of 2 MiB, whatever this is.
pub const RECYCLE_MIN_BYTES_LOWEST: u64 = 64 << 10;
/// A block beyond this is not a tensor but a mistake in the setting.
pub const RECYCLE_MIN_BYTES_HIGHEST: u64 = 1 << 40;
/// Where the recycler learns its decay from the program's pauses, it begins with this,
pub const DECAY_AUTO_MS: u32 = 300;
/// and goes no further than this. A longer pause counts as idle.
pub const DECAY_AUTO_MOST_MS: u32 = 5_000;
/// Longest decay that makes sense: a day.
pub const DECAY_MS_HIGHEST: u32 = 24 * 3600 * 1000;

/// Nobody waits for longer than a day.
pub const HIBERNATE_SECONDS_HIGHEST: u32 = 24 * 3600;

/// The governor's thread starts when a process first holds this much. A shell never does.
pub const GOVERNOR_START_BYTES: u64 = 64 << 20;
/// Large blocks are cached when freed, and somebody must age them: it starts earlier with this much of them,
pub const GOVERNOR_START_LARGE_BYTES: u64 = 32 << 20;
/// or with this much of it cached. Less than that may stay cached in a process without a governor.
pub const GOVERNOR_START_CACHED_BYTES: u64 = 16 << 20;

/// Programs that scripts start by the thousand. Their load and exit are nobody's stage, so the
/// shim's own markers leave them out.
pub const HELPERS: [&str; 56] = [
    "awk", "basename", "bash", "cat", "chmod", "cp", "cut", "dash", "date", "dirname", "echo",
    "egrep", "env", "expr", "false", "find", "gawk", "grep", "head", "hostname", "id", "kill",
    "ln", "ls", "mawk", "mkdir", "mkfifo", "mktemp", "mv", "nproc", "paste", "printf", "ps", "pwd",
    "readlink", "realpath", "rm", "rmdir", "sed", "seq", "sh", "sleep", "sort", "stat", "tail",
    "tee", "test", "touch", "tr", "true", "uname", "uniq", "wc", "which", "whoami", "xargs",
];
