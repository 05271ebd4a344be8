//! Finds the processes that listen, in the kernel's tables of Unix sockets. There is one table per
//! network namespace.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::client::Address;
use crate::library::search::FILE_NAME;
use crate::proc::{Process, ReadError};

/// Processes with a control channel.
pub fn listening() -> Vec<Process> {
    let mut tables = Tables::default();
    let all = Process::all().into_iter();
    all.filter(|process| tables.contains(process)).collect()
}

/// Processes with a control channel, and processes that only map the library.
pub fn with_library() -> (Vec<Process>, Vec<Process>) {
    let mut tables = Tables::default();
    let all = Process::all().into_iter();
    let (listening, mut others): (Vec<_>, Vec<_>) = all.partition(|one| tables.contains(one));
    others.retain(|process| has_library(process).unwrap_or(false));
    (listening, others)
}

/// Whether the process maps the library.
pub fn has_library(process: &Process) -> Result<bool, ReadError> {
    let maps = process.maps()?;
    Ok(maps.iter().any(|map| map.file_name() == FILE_NAME))
}

/// The tables that were read, by network namespace.
#[derive(Default)]
struct Tables {
    by_namespace: HashMap<Option<PathBuf>, HashSet<Address>>,
}

impl Tables {
    fn contains(&mut self, process: &Process) -> bool {
        // Unreadable for a process of another user, which may still share this network.
        let namespace = process.network_namespace();
        let table = self
            .by_namespace
            .entry(namespace)
            .or_insert_with_key(|namespace| {
                let path = match namespace {
                    Some(_) => process.path("net/unix"),
                    None => "/proc/self/net/unix".into(),
                };
                let bytes = fs::read(path).unwrap_or_default();
                parse(&String::from_utf8_lossy(&bytes))
            });
        // The pid in the process's own namespace costs reading a longer file.
        let is_candidate = !table.is_empty() && {
            let start_ticks = process.own_start_ticks();
            table.iter().any(|entry| entry.start_ticks == start_ticks)
        };
        is_candidate && table.contains(&Address::of(process))
    }
}

/// Lines of `Num RefCount Protocol Flags Type St Inode Path`. An abstract name starts with `@`.
fn parse(table: &str) -> HashSet<Address> {
    let address = |line: &str| {
        let name = line.split_ascii_whitespace().nth(7)?;
        Address::parse(name.strip_prefix('@')?)
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::server::Server;

    #[test]
    fn only_abstract_names_of_flarena_are_found_in_the_kernels_table() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0001 01 4711 @flarena/17/9876\n\
            0000: 00000003 00000000 00000000 0001 03 4712 @flarena/17/9876\n\
            0000: 00000002 00000000 00010000 0001 01 4713 /run/flarena/18/1\n\
            0000: 00000002 00000000 00000000 0002 01 4714\n";
        assert_eq!(
            parse(table),
            HashSet::from([Address {
                pid: 17,
                start_ticks: 9876
            }])
        );
    }

    #[test]
    fn a_name_with_another_start_time_does_not_list_the_process() {
        let stale = Server::silent();
        let own = Process::find(std::process::id() as i32).unwrap();
        assert_ne!(stale.address.start_ticks, own.start_ticks);
        assert!(!listening().iter().any(|process| process.pid == own.pid));
    }
}
