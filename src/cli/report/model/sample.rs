//! One marker, independent of the form it was read from.

use std::ops::{Index, IndexMut};

use flarena_shared::marker::MemoryLine;
use flarena_shared::stages::Stage;

/// Generates the sizes from one row each: its name, and its field in a marker.
macro_rules! sizes {
    ($(#[$attribute:meta])* pub enum Size {$(
        $(#[$doc:meta])* $size:ident = $field:literal,
    )*}) => {
        $(#[$attribute])*
        pub enum Size {$($(#[$doc])* $size,)*}

        impl Size {
            /// Each size and its field in a marker.
            pub const FIELDS: &[(Size, &str)] = &[$((Size::$size, $field)),*];
        }
    };
}

sizes! {
    /// The sizes of which every round is kept. A number that is needed once per process is a field of [`Sample`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Size {
        Rss = "rss_bytes",
        Anon = "anon_bytes",
        File = "file_bytes",
        Shmem = "shmem_bytes",
        /// Of a process that was forked or has forked: shared pages count with its part.
        Pss = "pss_bytes",
        Swap = "swap_bytes",
        Live = "live_bytes",
        Retained = "retained_bytes",
        Recycled = "recycled_bytes",
        Pymalloc = "pymalloc_bytes",
        Arrow = "arrow_bytes",
        Pinned = "pinned_bytes",
        /// In PyTorch's tensors on the GPUs.
        GpuAllocated = "gpu_allocated_bytes",
        /// The tensors and the free memory of PyTorch's cache on the GPUs.
        GpuReserved = "gpu_reserved_bytes",
        Cgroup = "cgroup_bytes",
        CgroupReclaimable = "cgroup_reclaimable_bytes",
    }
}

const SIZES: usize = Size::FIELDS.len();

/// Bytes of each `Size`; NaN if unknown.
#[derive(Clone, Copy, Debug)]
pub struct Sizes(pub [f64; SIZES]);

impl Sizes {
    pub const UNKNOWN: Sizes = Sizes([f64::NAN; SIZES]);

    /// Sets `self`, the mean of `count` samples, to the mean of these and of `other_count` others.
    pub fn average_with(&mut self, count: f64, other: &Sizes, other_count: f64) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            if mine.is_nan() {
                *mine = theirs;
            } else if !theirs.is_nan() {
                *mine = (*mine * count + theirs * other_count) / (count + other_count);
            }
        }
    }

    /// RSS and swap: all memory that the process takes from the machine.
    pub fn footprint(&self) -> f64 {
        self[Size::Rss] + or_zero(self[Size::Swap])
    }

    /// The pages that the recycler caches for the next large block, as far as they are resident; 0 if unknown.
    pub fn cached(&self) -> f64 {
        match (or_zero(self[Size::Recycled]), self[Size::Anon]) {
            (cached, anon) if anon < cached => anon,
            (cached, _) => cached,
        }
    }

    /// Memory that the kernel cannot drop: of the control group if that is known, and at least that of the process.
    pub fn unreclaimable(&self) -> f64 {
        // The kernel keeps file pages that a process uses: it moves them to its active list instead.
        let cache = or_zero(self[Size::CgroupReclaimable]) - or_zero(self[Size::File]);
        f64::max(self[Size::Cgroup] - cache.max(0.0), self.footprint())
    }

    /// Pages of files and of shared memory.
    pub fn file_backed(&self) -> f64 {
        sum_of_known(self[Size::File], self[Size::Shmem])
    }

    /// The shared memory that PyTorch has pinned for a GPU. None of it, if more is pinned than shared: then PyTorch pins
    /// blocks of malloc (`pinned_use_cuda_host_register`).
    pub fn pinned_shared(&self) -> f64 {
        match (self[Size::Pinned], self[Size::Shmem]) {
            (pinned, shared) if pinned <= shared => pinned,
            _ => 0.0,
        }
    }

    /// Resident free memory that the allocator (retained) or the recycler (cached) keeps. Both may also
    /// count pages that the program has never touched.
    pub fn kept_free(&self) -> f64 {
        let kept = sum_of_known(self[Size::Retained], self[Size::Recycled]);
        match self[Size::Anon] {
            anon if anon < kept => anon,
            _ => kept,
        }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes::UNKNOWN
    }
}

impl Index<Size> for Sizes {
    type Output = f64;

    fn index(&self, size: Size) -> &f64 {
        &self.0[size as usize]
    }
}

impl IndexMut<Size> for Sizes {
    fn index_mut(&mut self, size: Size) -> &mut f64 {
        &mut self.0[size as usize]
    }
}

pub fn or_zero(bytes: f64) -> f64 {
    match bytes.is_nan() {
        true => 0.0,
        false => bytes,
    }
}

fn sum_of_known(a: f64, b: f64) -> f64 {
    match a.is_nan() {
        true => b,
        false => a + or_zero(b),
    }
}

/// Unknown numbers and texts are `None`.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Version of the record: the field `v`.
    pub format_version: Option<f64>,
    /// Seconds since 1970 in UTC, or in local time if a log names no time zone.
    pub t: Option<f64>,
    /// Seconds of a clock that is never set; only differences have a meaning.
    pub mono: Option<f64>,
    pub pid: Option<u32>,
    pub start: Option<u64>,
    /// Identifies the start of the machine. Two machines may have processes with equal pid and start.
    pub boot: Option<String>,
    /// Empty if unknown.
    pub proc: String,
    pub program: Option<String>,
    /// By `FLARENA_NAME`.
    pub name: Option<String>,
    pub role: Option<String>,
    pub site: Option<String>,
    pub round: Option<i64>,
    /// Empty if unknown.
    pub stage: String,
    /// The beginning of NVFlare's job id.
    pub job: Option<String>,
    pub alloc: Option<String>,
    pub sizes: Sizes,
    /// Highest RSS so far.
    pub peak_rss: Option<f64>,
    /// Highest RSS since the previous marker, as far as the library knows.
    pub recent_peak_rss: Option<f64>,
    pub cgroup_limit: Option<f64>,
    /// Processes of the cgroup that the kernel has killed for lack of memory.
    pub oom_kills: Option<f64>,
    /// `FLARENA_MEMORY_LIMIT`, and the memory of the machine.
    pub memory_limit: Option<f64>,
    pub host_memory: Option<f64>,
    /// Bytes released by full garbage collections since the previous marker.
    pub gc_released: Option<f64>,
    /// Time that these collections took.
    pub gc_ms: Option<f64>,
    /// The least memory in large blocks right after one of them.
    pub gc_live_after: Option<f64>,
    /// CPU time of the process so far.
    pub cpu_ms: Option<f64>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Version of flarena.
    pub library_version: Option<String>,
    /// Settings that differ from their defaults: `FLARENA_GC=off FLARENA_SITES=on`.
    pub settings: Option<String>,
    pub seq: Option<u64>,
}

/// Stands for a missing name.
pub const NO_NAME: &str = "-";

impl Sample {
    /// True for the first marker of a program. An exec begins another program in the same process.
    pub fn begins_program(&self) -> bool {
        self.seq == Some(0) && self.stage == Stage::Load.name()
    }

    /// Takes the sizes of a `[MEM]` line, if it is of the same process and round.
    pub fn complete(&mut self, memory: &MemoryLine) {
        let is_same =
            self.proc == memory.proc && self.site == memory.site && self.round == memory.round;
        if !is_same {
            return;
        }
        let size = |name| memory.size(name).unwrap_or(f64::NAN);
        self.sizes[Size::Live] = size("live");
        self.sizes[Size::Retained] = size("free");
        self.sizes[Size::Recycled] = size("cached");
        self.sizes[Size::File] = size("file");
        self.sizes[Size::GpuReserved] = size("gpu");
        self.sizes[Size::Anon] = self.sizes[Size::Rss] - size("file");
        self.recent_peak_rss = memory.size("peak");
        self.cgroup_limit = memory.size("limit");
        self.sizes[Size::Cgroup] = size("limit") - size("left");
    }
}
