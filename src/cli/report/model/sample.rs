//! One marker as it was read, whatever its form.

use std::borrow::Cow;
use std::ops::{Index, IndexMut};

/// The sizes that are followed over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Size {
    Rss,
    Anon,
    File,
    Shmem,
    Swap,
    /// Of swap, what the library put there while the process was idle.
    Hibernated,
    Live,
    Retained,
    Recycled,
    Pymalloc,
    Arrow,
    Pinned,
    Cgroup,
    CgroupReclaimable,
}

const SIZES: usize = 14;

impl Size {
    /// Each with its field in a marker.
    pub const FIELDS: [(Size, &str); SIZES] = [
        (Size::Rss, "rss_bytes"),
        (Size::Anon, "anon_bytes"),
        (Size::File, "file_bytes"),
        (Size::Shmem, "shmem_bytes"),
        (Size::Swap, "swap_bytes"),
        (Size::Hibernated, "hibernated_bytes"),
        (Size::Live, "live_bytes"),
        (Size::Retained, "retained_bytes"),
        (Size::Recycled, "recycled_bytes"),
        (Size::Pymalloc, "pymalloc_bytes"),
        (Size::Arrow, "arrow_bytes"),
        (Size::Pinned, "pinned_bytes"),
        (Size::Cgroup, "cgroup_bytes"),
        (Size::CgroupReclaimable, "cgroup_reclaimable_bytes"),
    ];
}

/// Bytes by kind; NaN: not known.
#[derive(Clone, Copy, Debug)]
pub struct Sizes(pub [f64; SIZES]);

impl Sizes {
    pub const UNKNOWN: Sizes = Sizes([f64::NAN; SIZES]);

    /// The mean of `self`, which stands for `count` samples, and `other`, which stands for `more`.
    pub fn blend(&mut self, count: f64, other: &Sizes, more: f64) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            if mine.is_nan() {
                *mine = theirs;
            } else if !theirs.is_nan() {
                *mine = (*mine * count + theirs * more) / (count + more);
            }
        }
    }

    /// What the process takes from the machine: swapped pages are still its pages.
    pub fn footprint(&self) -> f64 {
        self[Size::Rss] + or_zero(self[Size::Swap])
    }

    /// What the kernel swapped out by itself.
    pub fn pushed_out(&self) -> f64 {
        match self[Size::Swap] - or_zero(self[Size::Hibernated]) {
            less if less < 0.0 => 0.0,
            pushed => pushed,
        }
    }

    /// Pages with a file or shared memory behind them.
    pub fn file_backed(&self) -> f64 {
        sum_of_known(self[Size::File], self[Size::Shmem])
    }

    /// Pages that the allocator or the recycler holds for later.
    pub fn held_back(&self) -> f64 {
        sum_of_known(self[Size::Retained], self[Size::Recycled])
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

#[derive(Clone, Debug)]
pub struct Sample<'a> {
    pub pid: Option<u32>,
    pub start: Option<u64>,
    pub proc: Cow<'a, str>,
    pub program: Option<Cow<'a, str>>,
    pub role: Option<Cow<'a, str>>,
    pub site: Option<Cow<'a, str>>,
    pub round: Option<i64>,
    pub stage: Cow<'a, str>,
    pub alloc: Option<Cow<'a, str>>,
    /// Seconds since 1970, or since another fixed day when the log names no time zone.
    pub t: Option<f64>,
    pub seq: Option<u64>,
    pub sizes: Sizes,
    /// Highest RSS so far; NaN: not known.
    pub hwm: f64,
    /// Limit of the cgroup; NaN: none or not known.
    pub limit: f64,
    /// Version of the record.
    pub version: f64,
    /// By full garbage collections since the marker before; NaN: not known.
    pub gc_released: f64,
    pub gc_ms: f64,
}

/// Of who or what has none.
pub const NO_NAME: &str = "-";

/// Nothing is known yet.
impl Default for Sample<'_> {
    fn default() -> Self {
        Sample {
            pid: None,
            start: None,
            proc: NO_NAME.into(),
            program: None,
            role: None,
            site: None,
            round: None,
            stage: NO_NAME.into(),
            alloc: None,
            t: None,
            seq: None,
            sizes: Sizes::UNKNOWN,
            hwm: f64::NAN,
            limit: f64::NAN,
            version: 1.0,
            gc_released: f64::NAN,
            gc_ms: f64::NAN,
        }
    }
}

impl Sample<'_> {
    /// The sample without ties to the line that it was read from.
    pub fn into_owned<'b>(self) -> Sample<'b> {
        let own = |text: Cow<str>| -> Cow<'b, str> { Cow::Owned(text.into_owned()) };
        Sample {
            proc: own(self.proc),
            program: self.program.map(own),
            role: self.role.map(own),
            site: self.site.map(own),
            stage: own(self.stage),
            alloc: self.alloc.map(own),
            ..Sample {
                proc: "".into(),
                program: None,
                role: None,
                site: None,
                stage: "".into(),
                alloc: None,
                ..self
            }
        }
    }
}
