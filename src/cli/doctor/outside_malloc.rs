//! Memory of a process outside malloc, with the size of each kind.

use super::environment::Get;
use super::finding::Finding;
use super::subject::Subject;
use crate::control::Stats;
use crate::proc::{Mapping, Status};
use crate::units::bytes;

/// Smaller amounts are not reported.
const MIN_REPORTED_BYTES: u64 = 16 << 20;
/// So much memory without a name is worth a trace.
const MIN_TRACED_BYTES: u64 = 64 << 20;

/// Where the resident memory is, and what to do about the largest part. Without an answer of the library only
/// the kernel's kinds are known.
pub fn memory(subject: &Subject) -> Option<Finding> {
    let Subject { status, maps, .. } = subject;
    let stats = subject.answer();
    let pid = subject.process.pid;
    let malloc = stats.and_then(|stats| stats.divide(status.anon_bytes));
    let mut parts = match &malloc {
        Some(parts) => vec![
            (parts.live, "in use by the program through malloc"),
            (parts.free, "free in malloc"),
            (parts.outside, "outside malloc"),
        ],
        None => vec![(status.anon_bytes, "anonymous (malloc, stacks, direct mmap)")],
    };
    let (of_files, of_drivers) = divide_files(status, maps);
    parts.extend([
        (of_files, "pages of files"),
        (of_drivers, "pages of drivers"),
        (status.shmem_bytes, "shared memory"),
    ]);
    parts.retain(|(size, _)| *size >= 1 << 20);
    parts.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    let largest = parts.first().map(|(size, _)| *size);
    let is_largest = |size: u64| size >= MIN_TRACED_BYTES && largest == Some(size);
    let remedy = match &malloc {
        Some(parts) if is_largest(parts.live) && stats.is_some_and(Stats::records_sites) => Some(
            format!("if it grows, `flarena who {pid}` names the lines that allocate it"),
        ),
        Some(parts) if is_largest(parts.live) => Some(format!(
            "if it grows, record the lines that allocate from now on with `flarena who {pid} --start`; \
             `flarena who {pid}` then names them"
        )),
        Some(parts) if is_largest(parts.free) => {
            Some(format!("run `flarena trim {pid}` to return the free memory now"))
        }
        _ => None,
    };
    let parts = parts
        .into_iter()
        .map(|(size, name)| format!("{} {name}", bytes(size)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let fact = format!("{} are resident: {parts}", bytes(status.rss_bytes));
    let finding = Finding::note("memory", fact).bytes(status.rss_bytes);
    Some(remedy.into_iter().fold(finding, Finding::remedy))
}

fn sized(id: &'static str, size: u64, text: &str) -> Option<Finding> {
    let fact = format!("{} {text}", bytes(size));
    (size >= MIN_REPORTED_BYTES).then(|| Finding::note(id, fact).bytes(size))
}

/// Anonymous memory that malloc did not allocate: thread stacks, pymalloc, a JVM, direct mmap.
pub fn outside_malloc(subject: &Subject) -> Option<Finding> {
    let Subject { status, maps, .. } = subject;
    let stats = subject.answer()?;
    let pid = subject.process.pid;
    let in_parts: u64 = stats.pools().map(|(_, size)| size).sum();
    let outside = stats.divide(status.anon_bytes)?.outside.max(in_parts);
    let name_of = |field| match field {
        "pymalloc_bytes" => "small Python objects",
        _ => "Arrow's pool",
    };
    let parts: String = stats
        .pools()
        .map(|(field, size)| format!("{} {}, ", bytes(size), name_of(field)))
        .collect();
    let has_jvm = maps.iter().any(|map| map.file_name() == "libjvm.so");
    let fact = format!(
        "at least {} of anonymous memory are outside malloc, where flarena returns nothing: {parts}{}",
        bytes(outside),
        match (parts.is_empty(), has_jvm) {
            (true, false) => "thread stacks, pymalloc, direct mmap",
            (false, false) => "the rest are thread stacks and direct mmap",
            (true, true) => "a JVM, thread stacks, pymalloc, direct mmap",
            (false, true) => "the rest are a JVM, thread stacks and direct mmap",
        }
    );
    if outside < MIN_REPORTED_BYTES {
        return None;
    }
    let finding = Finding::note("outside-malloc", fact).bytes(outside);
    let is_unnamed = outside - in_parts >= MIN_TRACED_BYTES && !has_jvm;
    Some(match is_unnamed {
        false => finding,
        true => {
            let finding = finding.remedy("if it grows, this shows which library maps it:");
            finding.command(format!("strace -f -k -e trace=mmap -p {pid}"))
        }
    })
}

/// Apache Arrow has its own memory pool, unless a variable selects malloc.
pub fn arrow(subject: &Subject) -> Option<Finding> {
    let maps = &subject.maps;
    let is_there = |map: &Mapping| map.file_name().starts_with("libarrow.so");
    if !maps.iter().any(is_there) {
        return None;
    }
    let choice = subject.get("ARROW_DEFAULT_MEMORY_POOL").unwrap_or_default();
    if choice == "system" {
        let fact = "Arrow's buffers come from malloc: ARROW_DEFAULT_MEMORY_POOL=system";
        return Some(Finding::ok("arrow-pool", fact));
    }
    let fact = "Arrow's buffers come from its own memory pool, which keeps free memory";
    let remedy = "start it with flarena run, which sets ARROW_DEFAULT_MEMORY_POOL=system";
    Some(Finding::note("arrow-pool", fact).remedy(remedy))
}

pub fn files(subject: &Subject) -> Option<Finding> {
    let Subject { status, maps, .. } = subject;
    let is_file = |map: &&Mapping| map.is_file() && !is_shared_memory(map) && !is_device(map);
    let (all, largest) = pages_of_files(maps, is_file);
    let text =
        format!("are pages of mapped files{largest}; the kernel drops them when it needs memory");
    sized("file-maps", divide_files(status, maps).0.max(all), &text)
}

/// The kernel counts resident pages of a driver as pages of files: the pages of files without those, and those.
fn divide_files(status: &Status, maps: &[Mapping]) -> (u64, u64) {
    let (all, _) = pages_of_files(maps, |map| is_device(map));
    let of_drivers = all.min(status.file_bytes);
    (status.file_bytes - of_drivers, of_drivers)
}

/// NVIDIA's driver serves pinned memory from shared memory without a name, which Linux lists as /dev/zero.
pub fn shared(subject: &Subject) -> Option<Finding> {
    let Subject { status, maps, .. } = subject;
    let stats = subject.answer();
    let (all, largest) = pages_of_files(maps, |map| is_shared_memory(map));
    let size = status.shmem_bytes.max(all);
    let (unnamed, _) = pages_of_files(maps, |map| map.name.starts_with("/dev/zero"));
    let is_cuda = maps.iter().any(is_gpu_driver) && 2 * unnamed > size;
    let pinned = stats.and_then(Stats::pinned_shared_bytes);
    let kind = match pinned {
        Some(pinned) => format!(
            "; PyTorch has pinned {} of it for a GPU, in use or cached",
            bytes(pinned)
        ),
        None if is_cuda => ", which is how the NVIDIA driver maps pinned memory".to_owned(),
        None => ", such as tensors passed between processes".to_owned(),
    };
    let text = format!("are shared memory{largest}{kind}");
    let finding = sized("shared-memory", size, &text)?;
    let remedy =
        "call flarena.trim() at the end of each round: it frees PyTorch's cache of pinned memory";
    Some(match pinned {
        Some(pinned) if 2 * pinned > size => finding.remedy(remedy),
        _ => finding,
    })
}

/// The resident pages of these files, and the file with the most, if these are enough to report. The
/// process may have mapped more since its status was read.
fn pages_of_files(maps: &[Mapping], matches: impl Fn(&&Mapping) -> bool) -> (u64, String) {
    let mut sizes = std::collections::BTreeMap::<&str, u64>::new();
    for map in maps.iter().filter(matches) {
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
    ["/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"]
        .iter()
        .any(|prefix| map.name.starts_with(prefix))
}

fn is_device(map: &Mapping) -> bool {
    map.name.starts_with("/dev/") && !is_shared_memory(map)
}

fn is_gpu_driver(map: &Mapping) -> bool {
    map.name.starts_with("/dev/nvidia")
}

/// Each process that uses a GPU has some 70 MB of its driver's pages. Tensors on the GPU are in no mapping.
pub fn devices(subject: &Subject) -> Option<Finding> {
    let maps = &subject.maps;
    let (size, _) = pages_of_files(maps, |map| is_gpu_driver(map));
    let managed = pages_of_files(maps, |map| map.name.starts_with("/dev/nvidia-uvm")).0;
    let managed = match managed >= MIN_REPORTED_BYTES {
        true => format!(", {} of them CUDA's managed memory", bytes(managed)),
        false => String::new(),
    };
    let text =
        format!("are pages of the NVIDIA driver{managed}; tensors on the GPU are not among them");
    sized("cuda", size, &text)
}

/// PyTorch for aarch64 contains a mimalloc.
pub fn bundled_mimalloc(subject: &Subject) -> Option<Finding> {
    let maps = &subject.maps;
    let torch = maps
        .iter()
        .any(|map| map.file_name().starts_with("libtorch_cpu"));
    let fact = "PyTorch on aarch64 allocates its CPU tensors with its own mimalloc";
    (torch && cfg!(target_arch = "aarch64"))
        .then(|| mimalloc("torch-mimalloc", fact, &|name| subject.get(name)))
}

/// A mimalloc inside another library or Python: whether it returns free memory to the system.
/// `fact` says which memory it serves.
pub fn mimalloc(id: &'static str, fact: &str, get: Get) -> Finding {
    const VARIABLE: &str = "MIMALLOC_PURGE_DELAY";
    // mimalloc has no timer. It checks any other delay only when the program allocates.
    let keeps = match get(VARIABLE) {
        Some(value) if value == "0" => {
            let fact = format!("{fact}, which returns free memory at once: {VARIABLE}=0");
            return Finding::ok(id, fact);
        }
        Some(value) => format!("with {VARIABLE}={} it keeps", value.display()),
        None => "it keeps".to_owned(),
    };
    let fact = format!("{fact}; {keeps} free memory while the program is idle");
    let remedy = format!("set {VARIABLE}=0, so that it returns free memory at once");
    Finding::note(id, fact).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;
    use crate::control::AskError;
    use crate::proc::{Environment, Process};

    const MB: u64 = 1 << 20;
    fn subject(status: &Status, maps: &[Mapping], stats: Option<&Stats>, pid: i32) -> Subject {
        let mut process = Process::find(std::process::id() as i32).unwrap();
        process.pid = pid;
        Subject {
            system: Default::default(),
            process,
            comm: String::new(),
            program: String::new(),
            status: status.clone(),
            rollup: None,
            maps: maps.to_vec(),
            arguments: Vec::new(),
            environment: Ok(Environment::default()),
            header: None,
            is_secure: false,
            cgroup: None,
            bindings: Default::default(),
            stats: stats.cloned().ok_or(AskError::NoLibrary(pid)),
        }
    }

    fn findings(
        status: &Status,
        maps: &[Mapping],
        stats: Option<&Stats>,
        pid: i32,
    ) -> Vec<Finding> {
        let subject = subject(status, maps, stats, pid);
        let rules = [outside_malloc, arrow, files, shared, devices];
        rules.iter().filter_map(|rule| rule(&subject)).collect()
    }

    fn ids(findings: &[Finding]) -> Vec<&str> {
        findings.iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn anonymous_memory_that_the_allocator_does_not_hold_is_reported() {
        let status = Status {
            anon_bytes: 100 * MB,
            ..Status::default()
        };
        let stats = format!(
            r#"{{"live_bytes":{},"retained_bytes":{}}}"#,
            30 * MB,
            20 * MB
        );
        let stats = Stats::parse(&stats).unwrap();
        let findings = findings(&status, &[], Some(&stats), 7);
        assert_eq!(
            (ids(&findings), findings[0].bytes),
            (vec!["outside-malloc"], Some(50 * MB))
        );
    }

    #[test]
    fn the_resident_memory_is_divided_and_its_largest_part_has_a_remedy() {
        let status = Status {
            rss_bytes: 200 * MB,
            anon_bytes: 180 * MB,
            file_bytes: 20 * MB,
            ..Status::default()
        };
        let with = |live: u64, free: u64, sites: &str| {
            let stats = format!(
                r#"{{"live_bytes":{},"retained_bytes":{},"settings":{{"FLARENA_SITES":"{sites}"}}}}"#,
                live * MB,
                free * MB
            );
            memory(&subject(
                &status,
                &[],
                Some(&Stats::parse(&stats).unwrap()),
                42,
            ))
            .unwrap()
        };
        let live = with(170, 0, "off");
        assert_eq!(
            live.fact,
            "200.0 MB are resident: 170.0 MB in use by the program through malloc, \
             20.0 MB pages of files, 10.0 MB outside malloc"
        );
        let remedy = |finding: Finding| finding.remedy.unwrap_or_default();
        assert!(remedy(live).contains("`flarena who 42 --start`"));
        let recording = remedy(with(170, 0, "on"));
        assert!(recording.contains("`flarena who 42` names"), "{recording}");
        assert!(remedy(with(5, 170, "off")).contains("`flarena trim 42`"));
        assert_eq!(remedy(with(5, 0, "off")), "");
        assert!(with(900, 90, "off").fact.contains("180.0 MB in use"));
        assert_eq!(
            memory(&subject(&status, &[], None, 42)).unwrap().fact,
            "200.0 MB are resident: 180.0 MB anonymous (malloc, stacks, direct mmap), \
             20.0 MB pages of files"
        );
    }

    #[test]
    fn much_memory_without_a_name_has_a_trace_to_paste() {
        let remedy = |anon: u64| {
            let status = Status {
                anon_bytes: anon * MB,
                ..Status::default()
            };
            let stats = r#"{"live_bytes":0,"retained_bytes":0,"pymalloc_bytes":8388608}"#;
            let stats = Stats::parse(stats).unwrap();
            let found = findings(&status, &[], Some(&stats), 4242);
            found[0].remedy.clone()
        };
        let trace = remedy(100).unwrap();
        assert!(
            trace.ends_with("\n    strace -f -k -e trace=mmap -p 4242"),
            "{trace}"
        );
        assert_eq!(remedy(60), None);
    }

    #[test]
    fn the_largest_mapped_file_is_named() {
        let map = Mapping {
            name: "/data/model.bin".into(),
            inode: 1,
            rss_bytes: 40 * MB,
            ..Mapping::default()
        };
        let status = Status {
            file_bytes: 50 * MB,
            ..Status::default()
        };
        let findings = findings(&status, &[map], None, 7);
        assert!(
            findings[0].fact.contains("40.0 MB of /data/model.bin"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_part_is_never_larger_than_its_whole() {
        let map = |anon| Mapping {
            name: "/x/libtorch.so".into(),
            inode: 1,
            rss_bytes: 30 * MB,
            anon_bytes: anon,
            ..Mapping::default()
        };
        let status = Status {
            anon_bytes: 60 * MB,
            file_bytes: 24 * MB,
            ..Status::default()
        };
        let stats = format!(
            r#"{{"live_bytes":{},"retained_bytes":0,"pymalloc_bytes":{}}}"#,
            42 * MB,
            20 * MB
        );
        let stats = Stats::parse(&stats).unwrap();
        let facts = |anon| {
            let found = findings(&status, &[map(anon)], Some(&stats), 7);
            found
                .into_iter()
                .map(|finding| finding.fact)
                .collect::<Vec<_>>()
        };
        let written = facts(10 * MB);
        let part = "24.0 MB are pages of mapped files, 20.0 MB of /x/libtorch.so";
        assert!(written[1].starts_with(part), "{written:?}");
        let part =
            "at least 20.0 MB of anonymous memory are outside malloc, where flarena returns nothing: 20.0 MB small Python";
        assert!(written[0].starts_with(part), "{written:?}");
        let later = facts(0);
        let part = "30.0 MB are pages of mapped files, 30.0 MB of /x/libtorch.so";
        assert!(later[1].starts_with(part), "{later:?}");
    }

    #[test]
    fn pages_of_the_gpu_driver_are_not_pages_of_files() {
        let map = |name: &str, mb: u64| Mapping {
            name: name.into(),
            inode: 1,
            end: 500 * MB,
            rss_bytes: mb * MB,
            ..Mapping::default()
        };
        let maps = [
            map("/dev/nvidiactl", 69),
            map("/dev/nvidia-uvm", 258),
            map("/x/libtorch.so", 200),
        ];
        let status = Status {
            file_bytes: 540 * MB,
            ..Status::default()
        };
        let findings = findings(&status, &maps, None, 7);
        let facts: Vec<_> = findings.iter().map(|finding| &finding.fact[..]).collect();
        assert_eq!(
            facts,
            [
                "213.0 MB are pages of mapped files, 200.0 MB of /x/libtorch.so; the kernel drops them when it needs memory",
                "327.0 MB are pages of the NVIDIA driver, 258.0 MB of them CUDA's managed memory; tensors on the GPU are not among them",
            ]
        );
    }

    #[test]
    fn pinned_memory_is_named_as_a_part_of_shared_memory() {
        let map = |name: &str, mb: u64| Mapping {
            name: name.into(),
            inode: 1,
            rss_bytes: mb * MB,
            ..Mapping::default()
        };
        let status = Status {
            anon_bytes: 100 * MB,
            shmem_bytes: 600 * MB,
            ..Status::default()
        };
        let stats = format!(
            r#"{{"rss_bytes":{},"anon_bytes":{},"file_bytes":0,"live_bytes":{},"retained_bytes":0,"pinned_bytes":{}}}"#,
            700 * MB,
            100 * MB,
            60 * MB,
            512 * MB
        );
        let stats = Stats::parse(&stats).unwrap();
        let fact = |maps: &[Mapping], stats| {
            let found = findings(&status, maps, stats, 7);
            found
                .into_iter()
                .find(|finding| finding.id == "shared-memory")
                .unwrap()
                .fact
        };
        let gpu = [map("/dev/zero", 590), map("/dev/nvidiactl", 4)];
        assert_eq!(
            fact(&gpu, Some(&stats)),
            "600.0 MB are shared memory, 590.0 MB of /dev/zero; PyTorch has pinned 512.0 MB of it for a GPU, in use or cached"
        );
        assert_eq!(
            fact(&gpu, None),
            "600.0 MB are shared memory, 590.0 MB of /dev/zero, which is how the NVIDIA driver maps pinned memory"
        );
        assert_eq!(
            fact(&gpu[..1], None),
            "600.0 MB are shared memory, 590.0 MB of /dev/zero, such as tensors passed between processes"
        );
        let outside = findings(&status, &gpu, Some(&stats), 7);
        let fact = &outside[0].fact;
        assert!(
            fact.starts_with("at least 40.0 MB of anonymous memory"),
            "{fact}"
        );
    }

    #[test]
    fn a_small_process_has_no_findings() {
        let status = Status {
            anon_bytes: MB,
            file_bytes: 3 * MB,
            ..Status::default()
        };
        assert!(findings(&status, &[], None, 7).is_empty());
    }

    #[test]
    fn known_pools_outside_malloc_are_named() {
        let status = Status {
            anon_bytes: 100 * MB,
            ..Status::default()
        };
        let stats = format!(
            r#"{{"live_bytes":{},"retained_bytes":0,"pymalloc_bytes":{},"arrow_bytes":null,"pinned_bytes":0}}"#,
            30 * MB,
            50 * MB
        );
        let stats = Stats::parse(&stats).unwrap();
        let jvm = Mapping {
            name: "/jvm/libjvm.so".into(),
            ..Mapping::default()
        };
        let with_jvm = findings(&status, &[jvm], Some(&stats), 7);
        let part = "the rest are a JVM, thread stacks";
        assert!(with_jvm[0].fact.contains(part), "{}", with_jvm[0].fact);
        let findings = findings(&status, &[], Some(&stats), 7);
        let fact = &findings[0].fact;
        assert!(
            fact.contains("50.0 MB small Python objects, the rest are thread"),
            "{fact}"
        );
        assert!(!fact.contains("Arrow") && !fact.contains("GPU"), "{fact}");
    }

    #[test]
    fn arrow_has_a_remedy_unless_its_buffers_come_from_malloc() {
        let maps = [Mapping {
            name: "/x/libarrow.so.2600".into(),
            inode: 1,
            ..Mapping::default()
        }];
        let remedy = |variables: &[u8]| {
            let mut subject = subject(&Status::default(), &maps, None, 7);
            subject.environment = Ok(Environment::parse(variables));
            let found = arrow(&subject).unwrap();
            assert_eq!(found.id, "arrow-pool");
            found.remedy.is_some()
        };
        assert!(remedy(b""));
        assert!(!remedy(b"ARROW_DEFAULT_MEMORY_POOL=system\0"));
    }

    fn with_delay(value: Option<&str>) -> Finding {
        mimalloc("x-mimalloc", "X contains a mimalloc", &|name| {
            value
                .filter(|_| name == "MIMALLOC_PURGE_DELAY")
                .map(std::ffi::OsString::from)
        })
    }

    #[test]
    fn a_mimalloc_with_a_delay_of_0_is_fine() {
        let found = with_delay(Some("0"));
        assert_eq!((found.level, found.remedy), (Level::Ok, None));
        assert!(
            found.fact.contains("MIMALLOC_PURGE_DELAY=0"),
            "{}",
            found.fact
        );
    }

    #[test]
    fn a_mimalloc_with_another_delay_is_noted_with_the_remedy() {
        for value in ["10", "-1", ""] {
            let found = with_delay(Some(value));
            let named = format!("with MIMALLOC_PURGE_DELAY={value} it keeps");
            assert!(found.fact.contains(&named), "{}", found.fact);
            assert_eq!(found.level, Level::Note, "{value}");
            assert!(found.remedy.unwrap().contains("MIMALLOC_PURGE_DELAY=0,"));
        }
    }

    #[test]
    fn a_mimalloc_without_a_delay_is_noted_with_the_remedy() {
        let found = with_delay(None);
        assert_eq!(found.level, Level::Note);
        assert!(found.remedy.unwrap().contains("MIMALLOC_PURGE_DELAY=0,"));
    }
}
