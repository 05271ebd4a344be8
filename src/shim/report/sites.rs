//! Reports of allocation sites: lines of the marker file, the document for `flarena who`, and the
//! requests of the Python package, which checks first that frames are read correctly.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void, CStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};

use flarena_shared::sites::{Frame, Holding, Owner, Record, Stack, Who, MAX_SITES_PER_RECORD};

use crate::report::panic::contain_call;
use crate::report::{buffer, holders, memory};
use crate::sites::{self, Site};
use flarena_sys::{identity, loader::objects};

/// Why Python's frames are not read, from the Python package. Null, or a leaked string.
static REASON: AtomicPtr<String> = AtomicPtr::new(ptr::null_mut());
/// One bit per site: its stack is in the marker file. A process writes each stack once.
static WRITTEN: [AtomicU64; sites::SITES / 64 + 1] =
    [const { AtomicU64::new(0) }; sites::SITES / 64 + 1];

/// The child is another process to a reader of the marker file, so it writes its stacks again.
pub fn after_fork_in_child() {
    WRITTEN.iter().for_each(|bits| bits.store(0, Relaxed));
    holders::after_fork_in_child();
    sites::after_fork_in_child();
}

/// The bytes of live large blocks by site: the largest sites, then the sum of all others.
fn census() -> (Vec<Holding>, Holding) {
    let now = sites::round();
    let mut of_site: HashMap<u32, (u64, Vec<Option<i64>>)> = HashMap::new();
    for block in sites::live_blocks() {
        let age = now
            .zip(block.origin.round)
            .map(|(now, born)| i64::from(now) - i64::from(born));
        let (bytes, ages) = of_site.entry(block.origin.site).or_default();
        *bytes += block.bytes as u64;
        ages.push(age);
    }
    // Blocks that were allocated before sites were on.
    let unknown = of_site
        .remove(&0)
        .map(|(bytes, ages)| holding(0, bytes, ages));
    let mut all: Vec<Holding> = of_site
        .into_iter()
        .map(|(site, (bytes, ages))| holding(site, bytes, ages))
        .collect();
    all.sort_by_key(|one| (std::cmp::Reverse(one.bytes), one.site));
    let mut rest = unknown.unwrap_or_default();
    for one in all.drain(MAX_SITES_PER_RECORD.min(all.len())..) {
        rest.bytes += one.bytes;
        rest.blocks += one.blocks;
        rest.oldest = rest.oldest.max(one.oldest);
    }
    rest.median = None;
    (all, rest)
}

fn holding(site: u32, bytes: u64, mut ages: Vec<Option<i64>>) -> Holding {
    ages.sort_unstable();
    Holding {
        site,
        bytes,
        blocks: ages.len() as u64,
        oldest: ages.last().copied().flatten(),
        median: ages.get(ages.len() / 2).copied().flatten(),
    }
}

fn stack(number: u32) -> Option<Stack> {
    let empty = Stack {
        site: number,
        ..Stack::default()
    };
    Some(match sites::site(number)? {
        Site::Python(frames) => Stack {
            frames: frames
                .iter()
                .map(|frame| Frame(frame.file.to_owned(), frame.line, frame.function.to_owned()))
                .collect(),
            ..empty
        },
        Site::Thread { name, caller } => Stack {
            thread: Some(name.to_owned()),
            library: library_of(caller),
            ..empty
        },
    })
}

/// The file name of the library or program that contains the address.
fn library_of(address: usize) -> Option<String> {
    if address == 0 {
        return None;
    }
    let path = match objects::path_of(address as *const c_void)? {
        path if path.is_empty() => std::env::current_exe().ok()?,
        path => PathBuf::from(OsString::from_vec(path.into_bytes())),
    };
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// The lines that follow the marker of this number in the marker file; empty if sites are off.
pub fn marker_lines(v: u32, t: f64, marker: u64, round: Option<i64>) -> String {
    if !sites::is_on() {
        return String::new();
    }
    let (held, rest) = census();
    let owner = Owner {
        pid: std::process::id(),
        start: identity::start_ticks(),
    };
    let mut lines = String::new();
    for one in &held {
        if let Some(stack) = is_first_write(one.site).then(|| stack(one.site)).flatten() {
            lines += &Record::Stack { v, owner, stack }.to_json_line();
        }
    }
    let sites = held;
    let record = Record::Sites {
        v,
        t,
        owner,
        marker,
        round,
        sites,
        rest,
    };
    lines + &record.to_json_line()
}

/// True the first time for each site.
fn is_first_write(site: u32) -> bool {
    let bit = 1 << (site % 64);
    let bits = WRITTEN.get(site as usize / 64);
    bits.is_some_and(|bits| bits.fetch_or(bit, Relaxed) & bit == 0)
}

/// The document for `flarena who`.
pub fn document() -> Who {
    let on = sites::is_on();
    let (sites, rest) = if on { census() } else { Default::default() };
    let recorded: u64 = sites.iter().chain([&rest]).map(|one| one.bytes).sum();
    let live_bytes = memory::now().live_bytes.filter(|_| on);
    // SAFETY: null, or a string that `answer` leaked.
    let reason = unsafe { REASON.load(Acquire).as_ref() }.cloned();
    let stacks = sites.iter().filter_map(|one| stack(one.site)).collect();
    Who {
        pid: std::process::id(),
        on,
        python: sites::reads_python(),
        reason,
        round: sites::round().map(i64::from),
        small_bytes: live_bytes.map(|live| live.saturating_sub(recorded)),
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
pub unsafe fn ask(request: *const c_char, buffer: *mut c_char, len: usize) -> c_int {
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

fn answer(verb: &str, rest: &str) -> Option<String> {
    Some(match verb {
        "prepare" => sites::prepare(rest.parse().ok()?)
            .err()
            .unwrap_or_default()
            .to_owned(),
        "frames" => sites::check_frames(),
        "start" => sites::start_python().to_string(),
        "stop" => {
            sites::stop_python();
            String::new()
        }
        "off" => {
            sites::stop_all();
            REASON.swap(Box::into_raw(Box::new(rest.to_owned())), AcqRel);
            String::new()
        }
        "round" => {
            sites::set_round(rest.parse().ok()?);
            String::new()
        }
        "who" => serde_json::to_string(&document()).unwrap_or_default(),
        "blocks" => blocks(rest.parse().ok()?),
        "wanted" => holders::requested_site().map_or_else(String::new, |site| site.to_string()),
        "holders" => {
            holders::answer(rest);
            String::new()
        }
        _ => return None,
    })
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
        let one = holding(3, 10, vec![Some(0), Some(5), Some(1)]);
        assert_eq!((one.oldest, one.median, one.blocks), (Some(5), Some(1), 3));
        let none = holding(3, 10, vec![None]);
        assert_eq!((none.oldest, none.median), (None, None));
    }

    #[test]
    fn unknown_request_has_no_answer() {
        assert_eq!(answer("sing", ""), None);
        assert_eq!(answer("blocks", "x"), None);
        assert_eq!(answer("wanted", "").as_deref(), Some(""));
    }
}
