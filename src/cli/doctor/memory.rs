//! Rules about the memory of a process: where it is, and the pools of other libraries.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::finding::Finding;
use super::subject::Subject;
use crate::control::Stats;
use crate::proc::Mapping;
use crate::units::bytes;

/// Smaller amounts are not reported.
const MIN_REPORTED_BYTES: u64 = 16 << 20;
/// So much memory without a name is worth a trace.
const MIN_TRACED_BYTES: u64 = 64 << 20;

/// Where the resident memory is, and the next step for the largest part. Without an answer of the library only
/// the kernel's kinds are known.
pub fn memory(s: &Subject) -> Option<Finding> {
    let (pid, status) = (s.pid, &s.status);
    let (of_files, of_drivers) = divide_files(s);
    let mut parts = vec![
        (of_files, "pages of files", None),
        (of_drivers, "pages of drivers", None),
        (status.shmem_bytes, "shared memory", None),
    ];
    if let Some(malloc) = s.answer().and_then(|stats| stats.divide(status.anon_bytes)) {
        let who = format!(
            "if it grows, `flarena who {pid}` names the lines that allocate it; \
             without `flarena run --sites` start recording them with `flarena who {pid} --start`"
        );
        let trim = format!("run `flarena trim {pid}` to return the free memory now");
        let live = "in use by the program through malloc";
        parts.push((malloc.live, live, Some(who)));
        parts.push((malloc.free, "free in malloc", Some(trim)));
        parts.push((malloc.outside, "outside malloc", None));
    } else {
        let kinds = "anonymous (malloc, stacks, direct mmap)";
        parts.push((status.anon_bytes, kinds, None));
    }
    parts.retain(|(size, ..)| *size >= 1 << 20);
    parts.sort_by_key(|(size, ..)| Reverse(*size));
    let text = |(size, name, _): &(u64, &str, _)| format!("{} {name}", bytes(*size));
    let texts = parts.iter().map(text).collect::<Vec<_>>().join(", ");
    let swapped = match status.swap_bytes {
        0 => String::new(),
        size => format!("; {} more are swapped out", bytes(size)),
    };
    let fact = format!("{} are resident: {texts}{swapped}", bytes(status.rss_bytes));
    let finding = Finding::note(fact).bytes(status.rss_bytes);
    Some(match parts.into_iter().next() {
        Some((MIN_TRACED_BYTES.., _, Some(remedy))) => finding.remedy(remedy),
        _ => finding,
    })
}

/// RSS does not count swapped pages. A few of them are no problem.
pub fn swap(s: &Subject) -> Option<Finding> {
    let (swapped, rss) = (s.status.swap_bytes, s.status.rss_bytes);
    let fact = format!(
        "{} of this process are swapped out: RSS does not count them, and they are slow to return",
        bytes(swapped)
    );
    let remedy =
        "give it more memory, or set FLARENA_MEMORY_LIMIT, so that it returns free memory earlier";
    let warning = || Finding::warning(fact).remedy(remedy).bytes(swapped);
    (swapped * 20 > rss).then(warning)
}

fn sized(size: u64, text: &str) -> Option<Finding> {
    let fact = format!("{} {text}", bytes(size));
    (size >= MIN_REPORTED_BYTES).then(|| Finding::note(fact).bytes(size))
}

/// Anonymous memory that malloc did not allocate: thread stacks, pymalloc, a JVM, direct mmap.
pub fn outside_malloc(s: &Subject) -> Option<Finding> {
    let stats = s.answer()?;
    let in_pools: u64 = stats.pools().map(|(_, size)| size).sum();
    let outside = stats.divide(s.status.anon_bytes)?.outside.max(in_pools);
    let text = "of anonymous memory are outside malloc, where flarena returns nothing: pymalloc, Arrow's pool, a JVM, \
                thread stacks, direct mmap";
    let mut finding = sized(outside, text)?;
    finding.fact.insert_str(0, "at least ");
    let trace = format!("strace -f -k -e trace=mmap -p {}", s.pid);
    let remedy = format!("if it grows, this shows which library maps it:\n    {trace}");
    Some(match outside - in_pools {
        MIN_TRACED_BYTES.. => finding.remedy(remedy),
        _ => finding,
    })
}

pub fn files(s: &Subject) -> Option<Finding> {
    let is_file = |map: &Mapping| map.is_file() && !is_shared_memory(map) && !is_device(map);
    let (all, largest) = pages_of_files(s, is_file);
    let text =
        format!("are pages of mapped files{largest}; the kernel drops them when it needs memory");
    sized(divide_files(s).0.max(all), &text)
}

/// The kernel counts resident pages of a driver as pages of files: the pages of files without those, and those.
fn divide_files(s: &Subject) -> (u64, u64) {
    let of_files = s.status.file_bytes;
    let of_drivers = pages_of_files(s, is_device).0.min(of_files);
    (of_files - of_drivers, of_drivers)
}

/// NVIDIA's driver serves pinned memory from shared memory without a name, which Linux lists as /dev/zero.
pub fn shared(s: &Subject) -> Option<Finding> {
    let (all, largest) = pages_of_files(s, is_shared_memory);
    let size = s.status.shmem_bytes.max(all);
    let Some(pinned) = s.answer().and_then(Stats::pinned_shared_bytes) else {
        let kind = "tensors passed between processes and memory pinned for a GPU are of this kind";
        return sized(size, &format!("are shared memory{largest}; {kind}"));
    };
    let part = bytes(pinned);
    let kind = format!("PyTorch has pinned {part} of it for a GPU, in use or cached");
    let remedy =
        "call flarena.trim() at the end of each round: it frees PyTorch's cache of pinned memory";
    Some(sized(size, &format!("are shared memory{largest}; {kind}"))?.remedy(remedy))
}

/// Each process that uses a GPU has some 70 MB of its driver's pages. Tensors on the GPU are in no mapping.
pub fn gpu_driver(s: &Subject) -> Option<Finding> {
    let (size, _) = pages_of_files(s, |map| map.name.starts_with("/dev/nvidia"));
    let text = "are pages of the NVIDIA driver; tensors on the GPU are not among them";
    sized(size, text)
}

/// The resident pages of these files, and the file with the most, if these are enough to report. The
/// process may have mapped more since its status was read.
fn pages_of_files(s: &Subject, matches: impl Fn(&Mapping) -> bool) -> (u64, String) {
    let mut sizes = BTreeMap::<&str, u64>::new();
    for map in s.maps.iter().filter(|map| matches(map)) {
        *sizes.entry(map.path()).or_default() += map.file_bytes();
    }
    let all = sizes.values().sum();
    let largest = match sizes.into_iter().max_by_key(|(_, size)| *size) {
        Some((path, size)) if size >= MIN_REPORTED_BYTES => format!(", {} of {path}", bytes(size)),
        _ => String::new(),
    };
    (all, largest)
}

fn is_shared_memory(map: &Mapping) -> bool {
    let starts = ["/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"];
    starts.iter().any(|start| map.name.starts_with(start))
}

fn is_device(map: &Mapping) -> bool {
    map.name.starts_with("/dev/") && !is_shared_memory(map)
}

/// The free memory of PyTorch's cache on the GPUs, if it is much.
pub fn gpu_cache(s: &Subject) -> Option<Finding> {
    let stats = s.answer()?;
    let reserved = stats.number("gpu_reserved_bytes")?;
    let free = reserved.saturating_sub(stats.number("gpu_allocated_bytes")?);
    if free < 256 << 20 || free < reserved / 3 {
        return None;
    }
    let (all, part) = (bytes(reserved), bytes(free));
    let fact = format!("PyTorch's cache holds {all} on the GPUs, {part} of them in no tensor now");
    let remedy = "if another process needs them, set cuda_empty_cache=True in the recipe, or call \
                  torch.cuda.empty_cache(). If little returns, the free memory is in pieces: start the process with \
                  PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    Some(Finding::note(fact).remedy(remedy).bytes(free))
}

/// Apache Arrow has its own memory pool, unless a variable selects malloc.
pub fn arrow(s: &Subject) -> Option<Finding> {
    let is_there = s.maps_file("libarrow.so") && s.text("ARROW_DEFAULT_MEMORY_POOL") != "system";
    let size = s.answer().and_then(|stats| stats.number("arrow_bytes"));
    let held = size.map_or(String::new(), |size| format!("; it holds {}", bytes(size)));
    let fact =
        format!("Arrow's buffers come from its own memory pool, which keeps free memory{held}");
    let remedy = "start it with flarena run, which sets ARROW_DEFAULT_MEMORY_POOL=system";
    is_there.then(|| Finding::note(fact).remedy(remedy).bytes(size))
}

/// PyTorch for aarch64 contains a mimalloc.
pub fn torch_mimalloc(s: &Subject) -> Option<Finding> {
    let is_there = s.maps_file("libtorch_cpu") && cfg!(target_arch = "aarch64");
    let fact = "PyTorch on aarch64 allocates its CPU tensors with its own mimalloc";
    is_there.then(|| mimalloc(s, fact))?
}

/// A mimalloc inside another library or Python that keeps free memory. It has no timer, and checks any other delay than 0
/// only when the program allocates. `fact` says which memory it serves.
pub fn mimalloc(s: &Subject, fact: &str) -> Option<Finding> {
    let keeps_memory = s.text("MIMALLOC_PURGE_DELAY") != "0";
    let fact = format!("{fact}; it keeps free memory while the program is idle");
    let remedy = "set MIMALLOC_PURGE_DELAY=0, so that it returns free memory at once";
    keeps_memory.then(|| Finding::note(fact).remedy(remedy))
}

pub fn onnx_arena(s: &Subject) -> Option<Finding> {
    let is_there = s.maps_file("onnxruntime_pybind11_state") || s.maps_file("libonnxruntime.so");
    let fact = "ONNX Runtime's CPU arena keeps the memory of the largest inputs as live memory";
    let remedy = "set enable_cpu_mem_arena = False in the SessionOptions of each session";
    is_there.then(|| Finding::note(fact).remedy(remedy))
}

pub fn java(s: &Subject) -> Option<Finding> {
    let is_there = s.maps_file("libjvm.so");
    let fact = "a JVM is in this process, with its heap outside malloc; its direct buffers are live memory in malloc";
    let remedy = "limit both, for example JAVA_TOOL_OPTIONS='-Xmx256m -XX:MaxDirectMemorySize=64m'";
    is_there.then(|| Finding::note(fact).remedy(remedy))
}
