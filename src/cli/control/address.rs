//! The name under which a process listens.

use crate::proc::Process;

/// Where a process listens: it knows itself by the id of its own namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    pub pid: i32,
    pub start_ticks: u64,
}

impl Address {
    pub fn of(process: &Process) -> Self {
        Self {
            pid: process.own_pid(),
            start_ticks: process.start_ticks,
        }
    }

    /// Without the NUL that makes it abstract.
    pub fn name(&self) -> String {
        format!("flarena/{}/{}", self.pid, self.start_ticks)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let (pid, start) = name.strip_prefix("flarena/")?.split_once('/')?;
        Some(Self {
            pid: pid.parse().ok()?,
            start_ticks: start.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back() {
        let address = Address {
            pid: 17,
            start_ticks: 9876,
        };
        assert_eq!(Address::parse(&address.name()), Some(address));
        for other in [
            "flarena/",
            "flarena/1",
            "flarena/a/b",
            "flarena/1/2/3",
            "x/1/2",
        ] {
            assert_eq!(Address::parse(other), None, "{other}");
        }
    }
}
