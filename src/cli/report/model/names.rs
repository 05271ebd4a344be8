//! The names of a process in tables and sentences.

use super::process::{Process, NO_NAME};

/// More sites are counted in the name of a process.
const MAX_NAMED_SITES: usize = 3;

impl Process {
    /// `4711`, or `14 procs` for processes that follow each other.
    pub fn pid_text(&self) -> String {
        match self.pid {
            _ if self.processes > 1 => format!("{} procs", self.processes),
            Some(pid) => pid.to_string(),
            None => "-".to_owned(),
        }
    }

    /// NVFlare's process name, such as `TR`, and the name by `FLARENA_NAME`; without both, the
    /// program's name.
    pub fn process_name(&self) -> String {
        let named = self.name.as_ref().filter(|name| **name != self.proc);
        match (self.proc.as_str(), named) {
            (NO_NAME, None) => self.program.as_ref().unwrap_or(&self.proc).clone(),
            (NO_NAME, Some(name)) => name.clone(),
            (proc, Some(name)) => format!("{proc} {name}"),
            (proc, None) => proc.to_owned(),
        }
    }

    /// The program's name; without it, that of the process.
    pub fn program_name(&self) -> String {
        let name = self.program.as_ref().or(self.name.as_ref());
        name.unwrap_or(&self.proc).clone()
    }

    /// `site-1`, `site-1, site-2`, `20 clients`, or `-`.
    pub fn site_names(&self) -> String {
        match &self.sites[..] {
            [] => NO_NAME.to_owned(),
            sites if sites.len() > MAX_NAMED_SITES => format!("{} clients", sites.len()),
            sites => sites.join(", "),
        }
    }

    /// The site of the process, or the name of a process without one.
    pub fn site_or_name(&self) -> String {
        if !self.sites.is_empty() {
            return self.site_names();
        }
        // A program that a named process starts is NAME/program, and a fork NAME/worker.
        let mut name = self.process_name();
        name.truncate(name.find('/').unwrap_or(name.len()));
        name
    }

    /// `site-1 TR, pid 4711`, or `site-1 TR, 14 processes, one a round`
    pub fn full_name(&self) -> String {
        let mut names = vec![self.site_names(), self.process_name()];
        names.retain(|name| name != NO_NAME);
        let n = self.processes;
        let is_one_a_round = self.stages.iter().all(|series| series.rounds <= n);
        let number = match self.pid {
            _ if n > 1 && is_one_a_round => format!("{n} processes, one a round"),
            _ if n > 1 => format!("{n} processes"),
            Some(pid) => format!("pid {pid}"),
            None if names.is_empty() => "unnamed process".to_owned(),
            None => String::new(),
        };
        let mut parts = vec![names.join(" "), number];
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }
}
