//! Which processes listen: the kernel's table of Unix sockets, one for each network namespace.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use super::address::Address;
use crate::library::search::FILE_NAME;
use crate::proc::{Process, ReadError};

/// Processes with a control channel.
pub fn listening() -> Vec<Process> {
    let mut tables = Tables::default();
    let all = Process::all().into_iter();
    all.filter(|process| tables.lists(process)).collect()
}

/// Processes with a control channel, and those that merely map the library.
pub fn shimmed() -> (Vec<Process>, Vec<Process>) {
    let mut tables = Tables::default();
    let (listening, others): (Vec<_>, Vec<_>) = Process::all()
        .into_iter()
        .partition(|process| tables.lists(process));
    let silent = others.into_iter();
    let silent = silent.filter(|process| is_shimmed(process).unwrap_or(false));
    (listening, silent.collect())
}

/// Whether the library is mapped; `None` when that cannot be read.
pub fn is_shimmed(process: &Process) -> Result<bool, ReadError> {
    Ok(process
        .maps()?
        .iter()
        .any(|mapping| mapping.file_name() == FILE_NAME))
}

/// The tables read so far, by network namespace.
#[derive(Default)]
struct Tables {
    by_namespace: HashMap<Option<PathBuf>, HashSet<Address>>,
}

impl Tables {
    fn lists(&mut self, process: &Process) -> bool {
        // Unreadable: another user's. It may still share our network.
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
        // The start is known already; the id in its own namespace costs another file.
        let is_candidate = table
            .iter()
            .any(|entry| entry.start_ticks == process.start_ticks);
        is_candidate && table.contains(&Address::of(process))
    }
}

/// `Num RefCount Protocol Flags Type St Inode Path`, an abstract name with `@` for its NUL.
fn parse(table: &str) -> HashSet<Address> {
    let names = table
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(7));
    names
        .filter_map(|name| Address::parse(name.strip_prefix('@')?))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::server::Server;
    use super::*;

    #[test]
    fn abstract_names_of_ours_are_picked_from_the_kernels_table() {
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
    fn a_listening_process_is_found_only_under_its_own_start_time() {
        let stale = Server::silent();
        let own = Process::find(std::process::id() as i32).unwrap();
        assert_ne!(stale.address.start_ticks, own.start_ticks);
        assert!(!listening().iter().any(|process| process.pid == own.pid));
    }
}
