//! Which file serves `malloc` in a live process, read from the pointers that its loader filled in.
//! This proof depends neither on file names nor on what the process reports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use flarena_shared::kernel_path::{self, file_name};

use crate::library::symbols::Malloc;
use crate::proc::{Mapping, Process};

/// The files that define `malloc`, and the calls from file to file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bindings {
    /// Files that define `malloc`.
    pub definers: Vec<String>,
    /// Files that export a jemalloc's `mallctl`, and its name, which may have a prefix.
    pub jemallocs: Vec<(String, String)>,
    /// Caller and server, by path. Empty if the memory of the process is not readable.
    pub calls: Vec<(String, String)>,
}

impl Bindings {
    pub fn of(process: &Process, maps: &[Mapping]) -> Self {
        let memory = File::open(process.path("mem")).ok();
        let mut found = Self::default();
        for image in images(maps) {
            let Ok(Some(malloc)) = Malloc::read(&place(process, image)) else {
                continue;
            };
            let path = || image.path().to_owned();
            if malloc.is_defined {
                found.definers.push(path());
            }
            if let Some(name) = malloc.mallctl {
                found.jemallocs.push((path(), name));
            }
            let bias = image.start.wrapping_sub(malloc.first_address);
            let slots = malloc.slots.iter();
            let calls: BTreeSet<_> = slots
                .filter_map(|slot| read_pointer(memory.as_ref()?, bias.wrapping_add(*slot)))
                .filter_map(|target| maps.iter().find(|map| map.contains(target)))
                .map(|map| (path(), map.path().to_owned()))
                .collect();
            found.calls.extend(calls);
        }
        found.remove_indirect_calls();
        found
    }

    /// Removes pointers to files that do not define `malloc`. Such a pointer is not bound yet, or
    /// it points to a stub in a program that was linked at a fixed address.
    fn remove_indirect_calls(&mut self) {
        let definers = &self.definers;
        self.calls.retain(|(_, server)| definers.contains(server));
    }

    /// The file whose `malloc` most files call.
    pub fn server(&self) -> Option<&str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, server) in &self.calls {
            *counts.entry(server).or_default() += 1;
        }
        let (server, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        Some(server)
    }

    /// The calls to another file: bound by RTLD_DEEPBIND, or to the caller's own malloc.
    pub fn strays(&self) -> Vec<&(String, String)> {
        let common = self.server().unwrap_or_default();
        let calls = self.calls.iter();
        calls.filter(|(_, server)| server != common).collect()
    }

    /// Files that define `malloc`, without the C library and the loader, which always do.
    pub fn other_definers(&self) -> impl Iterator<Item = &str> {
        let paths = self.definers.iter().map(String::as_str);
        paths.filter(|path| !file_name(path).starts_with("libc.so"))
    }
}

/// The first mapping of each program and library. The loader is excluded, because it calls a malloc
/// inside itself until the program's malloc is loaded.
fn images(maps: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    let code = maps.iter().filter(|map| map.is_executable);
    let programs: BTreeSet<&str> = code.map(Mapping::path).collect();
    let starts = ["ld-", "ld.so", "ld64"];
    let is_loader = move |name: &str| starts.iter().any(|start| name.starts_with(start));
    maps.iter().filter(move |map| {
        let is_first = map.offset == 0 && map.is_file();
        is_first && programs.contains(map.path()) && !is_loader(map.file_name())
    })
}

/// A path to open the file: through the root of the process, or for a deleted file by its mapping.
fn place(process: &Process, map: &Mapping) -> PathBuf {
    if kernel_path::is_deleted(&map.name) {
        return process.path(&format!("map_files/{:x}-{:x}", map.start, map.end));
    }
    process.inside(&map.name)
}

fn read_pointer(memory: &File, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(u64::from_ne_bytes(bytes)).filter(|pointer| *pointer != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_this_process_the_c_library_serves_malloc() {
        let own = Process::find(std::process::id() as i32).unwrap();
        let bindings = Bindings::of(&own, &own.maps().unwrap());
        assert_eq!(bindings.server().map(file_name), Some("libc.so.6"));
        assert_eq!(
            bindings.other_definers().count(),
            0,
            "{:?}",
            bindings.definers
        );
    }

    #[test]
    fn a_call_to_a_file_without_malloc_is_removed() {
        let call = |server: &str| ("/a".to_owned(), server.to_owned());
        let mut bindings = Bindings {
            definers: vec!["/libc.so.6".into()],
            calls: vec![call("/python3"), call("/libc.so.6")],
            ..Bindings::default()
        };
        bindings.remove_indirect_calls();
        assert_eq!(bindings.calls, [call("/libc.so.6")]);
    }

    #[test]
    fn a_call_to_another_malloc_is_a_stray() {
        let call = |caller: &str, server: &str| (caller.to_owned(), server.to_owned());
        let calls = vec![
            call("/a", "/libflarena.so"),
            call("/b", "/libflarena.so"),
            call("/c", "/libc.so.6"),
        ];
        let bindings = Bindings {
            calls,
            ..Bindings::default()
        };
        assert_eq!(bindings.server(), Some("/libflarena.so"));
        assert_eq!(bindings.strays(), [&call("/c", "/libc.so.6")]);
    }
}
