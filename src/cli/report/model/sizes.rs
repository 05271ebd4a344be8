//! The sizes of which every round is kept.

use flarena_shared::marker::Marker;

/// Generates the sizes from one row each: its name, and its field in a marker.
macro_rules! sizes {
    ($(#[$attribute:meta])* pub enum Size {$(
        $(#[$doc:meta])* $size:ident = $field:ident,
    )*}) => {
        $(#[$attribute])*
        pub enum Size {$($(#[$doc])* $size,)*}

        impl Size {
            /// Each size and its field in a marker.
            pub const FIELDS: &[(Size, &str)] = &[$((Size::$size, stringify!($field))),*];
        }

        impl Sizes {
            pub fn of(marker: &Marker) -> Sizes {
                let mut sizes = Sizes::default();
                $(sizes.set(Size::$size, marker.$field.map(|bytes| bytes as f64));)*
                sizes
            }
        }
    };
}

sizes! {
    /// The sizes of which every round is kept. A number that is needed once per process is a field of `Process`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Size {
        Rss = rss_bytes,
        Anon = anon_bytes,
        File = file_bytes,
        Shmem = shmem_bytes,
        /// Of a process that was forked or has forked: shared pages count with its part.
        Pss = pss_bytes,
        Swap = swap_bytes,
        Live = live_bytes,
        Retained = retained_bytes,
        Recycled = recycled_bytes,
        Pymalloc = pymalloc_bytes,
        Arrow = arrow_bytes,
        Pinned = pinned_bytes,
        /// In PyTorch's tensors on the GPUs.
        GpuAllocated = gpu_allocated_bytes,
        /// The tensors and the free memory of PyTorch's cache on the GPUs.
        GpuReserved = gpu_reserved_bytes,
        Cgroup = cgroup_bytes,
        CgroupReclaimable = cgroup_reclaimable_bytes,
    }
}

const SIZES: usize = Size::FIELDS.len();
const _: () = assert!(SIZES <= u16::BITS as usize);

/// Bytes of each `Size`, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    bytes: [f64; SIZES],
    /// A bit for each known size. An `Option` for each would need twice the memory.
    known: u16,
}

impl Sizes {
    pub fn get(&self, size: Size) -> Option<f64> {
        let is_known = self.known & 1 << size as usize != 0;
        is_known.then_some(self.bytes[size as usize])
    }

    pub fn set(&mut self, size: Size, bytes: Option<f64>) {
        let others = self.known & !(1 << size as usize);
        self.known = others | u16::from(bytes.is_some()) << size as usize;
        self.bytes[size as usize] = bytes.unwrap_or(0.0);
    }

    fn or_zero(&self, size: Size) -> f64 {
        self.get(size).unwrap_or(0.0)
    }

    /// Sets `self`, the mean of `count` samples, to the mean of these and of `other_count` others.
    pub fn average_with(&mut self, count: f64, other: &Sizes, other_count: f64) {
        let all = count + other_count;
        let mean = |(mine, theirs)| (mine * count + theirs * other_count) / all;
        for (size, _) in Size::FIELDS {
            let (mine, theirs) = (self.get(*size), other.get(*size));
            self.set(*size, mine.zip(theirs).map(mean).or(mine).or(theirs));
        }
    }

    /// Every marker has it.
    pub fn rss(&self) -> f64 {
        self.or_zero(Size::Rss)
    }

    /// RSS and swap: all memory that the process takes from the machine.
    pub fn footprint(&self) -> f64 {
        self.rss() + self.or_zero(Size::Swap)
    }

    /// The pages that the recycler caches for the next large block, as far as they are resident; 0 if unknown.
    pub fn cached(&self) -> f64 {
        let cached = self.or_zero(Size::Recycled);
        self.get(Size::Anon).map_or(cached, |anon| anon.min(cached))
    }

    /// Memory that the kernel cannot drop: of the control group if that is known, and at least that of the process.
    pub fn unreclaimable(&self) -> f64 {
        // The kernel keeps file pages that a process uses: it moves them to its active list instead.
        let cache = self.or_zero(Size::CgroupReclaimable) - self.or_zero(Size::File);
        f64::max(self.or_zero(Size::Cgroup) - cache.max(0.0), self.rss())
    }

    /// What the control group holds, without reclaimable pages.
    pub fn held_by_group(&self) -> Option<f64> {
        Some(self.get(Size::Cgroup)? - self.get(Size::CgroupReclaimable)?)
    }

    /// Pages of files and of shared memory.
    pub fn file_backed(&self) -> Option<f64> {
        self.sum_of_known(Size::File, Size::Shmem)
    }

    /// The shared memory that PyTorch has pinned for a GPU. None of it, if more is pinned than shared: then PyTorch pins
    /// blocks of malloc (`pinned_use_cuda_host_register`).
    pub fn pinned_shared(&self) -> f64 {
        let pinned = self.get(Size::Pinned);
        let pinned = pinned.filter(|pinned| *pinned <= self.or_zero(Size::Shmem));
        pinned.unwrap_or(0.0)
    }

    /// Resident free memory that the allocator (retained) or the recycler (cached) keeps. Both may also
    /// count pages that the program has never touched.
    pub fn kept_free(&self) -> Option<f64> {
        let kept = self.sum_of_known(Size::Retained, Size::Recycled)?;
        Some(self.get(Size::Anon).map_or(kept, |anon| anon.min(kept)))
    }

    fn sum_of_known(&self, a: Size, b: Size) -> Option<f64> {
        let is_known = self.get(a).or(self.get(b)).is_some();
        is_known.then_some(self.or_zero(a) + self.or_zero(b))
    }
}
