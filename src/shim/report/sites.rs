//! Reports of allocation sites: lines of the marker file, the document for `flarena who`, and the
//! requests of the Python package, which checks first that frames are read correctly.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, CStr};
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flarena_shared::marker::Marker;
use flarena_shared::sites::{Holding, Owner, Record, SmallBlocks, Who, MAX_SITES_PER_RECORD};

use crate::report::panic::contain_call;
use crate::report::{buffer, holders, memory};
use flarena_sites::{self as sites, sampler};
use flarena_sys::sync::lock::Lock;

/// Why Python's frames are not read, from the last attempt to turn sites on.
static REASON: Lock<Option<String>> = Lock::new(None);

pub fn set_reason(reason: &str) {
    *REASON.lock() = Some(reason.to_owned());
}

pub fn set_reason_if_none(reason: &str) {
    REASON.lock().get_or_insert_with(|| reason.to_owned());
}

pub fn forget_reason() {
    *REASON.lock() = None;
}

/// By the number of a site: the process that has written its stack to the marker file, or is about to. It does so once.
/// A forked child is another process to a reader of the file, so it writes its stacks again.
static WRITERS: [AtomicU32; sites::SITES + 1] = [const { AtomicU32::new(0) }; sites::SITES + 1];

/// # Safety
/// Only in the child of a fork, before it has other threads.
pub unsafe fn after_fork_in_child() {
    // SAFETY: as for this function.
    unsafe {
        holders::after_fork_in_child();
        REASON.reset_after_fork();
    }
    sites::after_fork_in_child();
}

/// The live memory of the process by site.
#[derive(Default)]
struct Census {
    /// The largest sites.
    sites: Vec<Holding>,
    /// The sum of all others.
    rest: Holding,
    small: Option<SmallBlocks>,
}

impl Census {
    /// The part of this live memory that has no site.
    fn unrecorded(&self, live_bytes: Option<u64>) -> Option<u64> {
        let all = self.sites.iter().chain([&self.rest]);
        let recorded = all.map(|one| one.bytes).sum();
        live_bytes.map(|live| live.saturating_sub(recorded))
    }
}

/// A sum of blocks. A sample stands for all small blocks of its size, most of which are not recorded.
#[derive(Default)]
struct Sum {
    bytes: f64,
    blocks: f64,
    variance: f64,
    ages: Vec<Option<i64>>,
}

impl Sum {
    /// `probability` is that of a record for a block of this size.
    fn add(&mut self, bytes: usize, probability: f64) {
        let bytes = bytes as f64;
        self.bytes += bytes / probability;
        self.blocks += 1.0 / probability;
        self.variance += bytes * bytes * (1.0 - probability) / (probability * probability);
    }

    fn error(&self) -> f64 {
        self.variance.sqrt()
    }

    fn holding(mut self, site: u32) -> Holding {
        self.ages.sort_unstable();
        Holding {
            site,
            bytes: rounded(self.bytes),
            blocks: rounded(self.blocks),
            error: rounded(self.error()),
            oldest: self.ages.last().copied().flatten(),
            median: self.ages.get(self.ages.len() / 2).copied().flatten(),
        }
    }
}

fn rounded(value: f64) -> u64 {
    (value + 0.5) as u64
}

fn census() -> Census {
    let (now, period) = (sites::round(), sampler::period());
    let mut small = Sum::default();
    let mut samples = 0;
    let mut of_site: HashMap<u32, Sum> = HashMap::new();
    for block in sites::live_blocks() {
        let age = now
            .zip(block.origin.round)
            .map(|(now, born)| i64::from(now) - i64::from(born));
        let sum = of_site.entry(block.origin.site).or_default();
        sum.ages.push(age);
        match period.filter(|_| block.is_sample) {
            None => sum.add(block.bytes, 1.0),
            Some(period) => {
                let probability = sampler::probability(block.bytes, period);
                sum.add(block.bytes, probability);
                small.add(block.bytes, probability);
                samples += 1;
            }
        }
    }
    // Blocks without a site (`Origin::site`). If sites started late, they belong to `before_bytes`.
    let unknown = of_site.remove(&0).filter(|_| !sites::is_late());
    let all = of_site.into_iter();
    let mut all: Vec<Holding> = all.map(|(site, sum)| sum.holding(site)).collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.site));
    let mut rest = unknown.map(|sum| sum.holding(0)).unwrap_or_default();
    for one in all.drain(MAX_SITES_PER_RECORD.min(all.len())..) {
        rest.add(&one);
    }
    rest.median = None;
    let small = period.map(|period| SmallBlocks {
        bytes: rounded(small.bytes),
        error: rounded(small.error()),
        samples,
        period,
        lost: sites::lost_records() as u64,
    });
    Census {
        sites: all,
        rest,
        small,
    }
}

/// The line of the program that this thread runs: `train.py:12 in step`. `None` if frames are not read.
pub fn line_of_thread() -> Option<String> {
    let stack = sites::site(sites::of_thread()?)?;
    Some(stack.user_frames().first()?.short())
}

/// The lines that follow a marker in the marker file.
#[derive(Default)]
pub struct MarkerLines {
    pub text: String,
    /// The sites whose stacks are in the text.
    stacks: Vec<u32>,
}

impl MarkerLines {
    /// Called if the text could not be written: the next marker writes the stacks.
    pub fn note_failure(&self) {
        for site in &self.stacks {
            WRITERS[*site as usize].store(0, Relaxed);
        }
    }
}

/// The lines for the marker; empty if sites are off.
pub fn marker_lines(marker: &Marker) -> MarkerLines {
    let mut lines = MarkerLines::default();
    if !sites::is_on() {
        return lines;
    }
    let census = census();
    let live_bytes = sites::is_late().then(|| memory::now().live_bytes);
    let before_bytes = census.unrecorded(live_bytes.flatten());
    let v = marker.v;
    let pid = marker.pid.unwrap_or_default();
    let owner = Owner {
        pid,
        start: marker.start.unwrap_or_default(),
        boot: marker.boot,
    };
    for one in &census.sites {
        if WRITERS[one.site as usize].swap(pid, Relaxed) == pid {
            continue;
        }
        if let Some(stack) = sites::site(one.site) {
            lines.text += &Record::Stack { v, owner, stack }.to_json_line();
            lines.stacks.push(one.site);
        }
    }
    let record = Record::Sites {
        v,
        t: marker.t.unwrap_or_default(),
        mono: marker.mono,
        owner,
        marker: marker.seq.unwrap_or_default(),
        round: marker.round,
        sites: census.sites,
        rest: census.rest,
        small: census.small,
        before_bytes,
    };
    lines.text += &record.to_json_line();
    lines
}

/// The document for `flarena who`.
pub fn document() -> Who {
    let on = sites::is_on();
    let census = if on { census() } else { Census::default() };
    let memory = memory::now();
    let unrecorded = census.unrecorded(memory.live_bytes.filter(|_| on));
    let Census { sites, rest, small } = census;
    let is_late = sites::is_late();
    let stacks = sites
        .iter()
        .filter_map(|one| sites::site(one.site))
        .collect();
    Who {
        pid: std::process::id(),
        on,
        python: sites::reads_python(),
        reason: REASON.lock().clone(),
        round: sites::round().map(i64::from),
        before_bytes: unrecorded.filter(|_| is_late),
        small_bytes: unrecorded.filter(|_| !is_late && small.is_none()),
        small,
        pymalloc_bytes: memory.pools.pymalloc_bytes.filter(|_| on),
        sites,
        rest,
        stacks,
    }
}

/// The body of `flarena_sites`, for the Python package. Returns a length like snprintf, or -1 if it
/// does not know the request.
///
/// # Safety
/// The request is NUL-terminated; the buffer is NULL or has room for `len` bytes.
pub unsafe extern "C" fn ask(request: *const c_char, buffer: *mut c_char, len: usize) -> c_int {
    if request.is_null() {
        return -1;
    }
    contain_call(-1, || {
        // SAFETY: the caller passes a NUL-terminated request.
        let request = unsafe { CStr::from_ptr(request) }.to_string_lossy();
        let (verb, rest) = request.split_once(' ').unwrap_or((&request, ""));
        let Some(text) = answer(verb, rest) else {
            return -1;
        };
        // SAFETY: the caller's buffer has room for `len` bytes.
        unsafe { buffer::copy_text(buffer, len, &text) }
    })
}

/// Carries out a command, or answers a question.
fn answer(verb: &str, rest: &str) -> Option<String> {
    match verb {
        "prepare" => {
            let obstacle = sites::prepare(rest.parse().ok()?).err();
            return Some(obstacle.unwrap_or_default().to_owned());
        }
        "frames" => return Some(sites::check_frames()),
        "start" => return Some(sites::start_python().to_string()),
        "who" => return serde_json::to_string(&document()).ok(),
        "blocks" => return Some(blocks(rest.parse().ok()?)),
        "wanted" => {
            let site = holders::requested_site().map(|site| site.to_string());
            return Some(site.unwrap_or_default());
        }
        "stop" => sites::stop_python(),
        "off" => {
            sites::stop_all();
            set_reason(rest);
        }
        "refuse" => set_reason(rest),
        "round" => sites::set_round(rest.parse().ok()?),
        "holders" => holders::answer(rest),
        _ => return None,
    }
    Some(String::new())
}

/// The live blocks of a site, one line each: address, size.
fn blocks(site: u32) -> String {
    let mut lines = String::new();
    for block in sites::live_blocks() {
        if block.origin.site == site {
            let _ = writeln!(lines, "{} {}", block.start, block.bytes);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holding_has_the_oldest_and_the_median_age() {
        let with = |ages: &[Option<i64>]| {
            let mut sum = Sum::default();
            ages.iter().for_each(|_| sum.add(10, 1.0));
            sum.ages = ages.to_vec();
            sum.holding(3)
        };
        let one = with(&[Some(0), Some(5), Some(1)]);
        assert_eq!((one.oldest, one.median, one.blocks), (Some(5), Some(1), 3));
        assert_eq!((one.bytes, one.error), (30, 0));
        let none = with(&[None]);
        assert_eq!((none.oldest, none.median), (None, None));
    }

    #[test]
    fn sample_counts_for_the_blocks_that_are_not_recorded() {
        let mut sum = Sum::default();
        for _ in 0..4 {
            sum.add(1000, 0.01);
        }
        let one = sum.holding(3);
        assert_eq!((one.bytes, one.blocks), (400_000, 400));
        assert_eq!(one.error, 198_997); // 2 sqrt(0.99) / 0.01 * 1000
    }

    #[test]
    fn unknown_request_has_no_answer() {
        assert_eq!(answer("sing", ""), None);
        assert_eq!(answer("blocks", "x"), None);
        assert_eq!(answer("wanted", "").as_deref(), Some(""));
    }
}
