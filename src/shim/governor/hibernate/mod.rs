//! Hibernation (`FLARENA_HIBERNATE`): moves the memory of an idle program to swap, and back when
//! the program works again.
//!
//! `machine` decides with `policy`, and acts through `memory`. This file connects it to the
//! settings, the statistics and the markers. Only the governor's thread comes here.

mod machine;
mod memory;
mod policy;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use flarena_shared::settings::Hibernate;
use flarena_shared::stages::Stage;

use self::machine::{Machine, View};
use self::memory::ProcessMemory;
use super::idle::Usage;
use crate::report::{hibernation, log, mark};
use flarena_sys::{config, proc::paging, proc::swap};

pub struct Hibernation {
    /// `None` if it is off, or the system lacks what it needs.
    machine: Option<Machine<ProcessMemory>>,
    /// At the last tick.
    idle_for: Duration,
    ticked_at: Instant,
}

impl Hibernation {
    pub fn new(now: Instant) -> Hibernation {
        Hibernation {
            machine: idle_time_to_wait().map(|after| Machine::new(ProcessMemory, after, now)),
            idle_for: Duration::ZERO,
            ticked_at: now,
        }
    }

    pub fn is_out(&self) -> bool {
        self.machine.as_ref().is_some_and(Machine::is_out)
    }

    pub fn tick(&mut self, now: Instant, idle_for: Duration) {
        let passed = now.duration_since(self.ticked_at);
        hibernation::note_time(passed, !idle_for.is_zero());
        self.ticked_at = now;
        self.idle_for = idle_for;
    }

    /// Returns the time until the next step; `None`: at the next tick.
    pub fn step(&mut self) -> Option<Duration> {
        let machine = self.machine.as_mut()?;
        let view = View {
            now: Instant::now(),
            idle_for: self.idle_for,
            usage: Usage::of_program(),
            passed_stage: hibernation::take_mark(),
        };
        let was_out = machine.is_out();
        let pause = machine.step(view);
        hibernation::set_bytes(machine.out_bytes());
        if machine.is_out() && !was_out {
            mark::event(Stage::Hibernated);
        }
        pause
    }
}

/// The idle time of the setting, if hibernation is on and possible.
fn idle_time_to_wait() -> Option<Duration> {
    let Hibernate::AfterSeconds(seconds) = config::settings().hibernate else {
        return None;
    };
    if !paging::is_possible() {
        log::info(format_args!(
            "FLARENA_HIBERNATE={seconds}: no hibernation: it needs Linux 5.14 and a readable /proc/self/pagemap"
        ));
        return None;
    }
    if swap::room_bytes() == 0 {
        log::info(format_args!(
            "FLARENA_HIBERNATE={seconds}: no hibernation until there is swap that this process may use"
        ));
    }
    Some(Duration::from_secs(seconds.into()))
}
