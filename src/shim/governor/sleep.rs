//! This process's hibernation: what it needs to know, and what others may know of it.

use std::time::{Duration, Instant};

use flarena_shared::settings::Hibernate;
use flarena_shared::stages::Stage;

use super::hibernate::memory::Blocks;
use super::hibernate::{Hibernation, View};
use super::usage;
use crate::report::{hibernation, mark, say};
use flarena_sys::{config, proc::paging, proc::swap};

pub struct Sleep {
    /// None where the user has not asked for it, or the kernel cannot do it.
    hibernation: Option<Hibernation<Blocks>>,
    /// As the last tick saw it.
    idle_for: Duration,
    noticed_at: Instant,
}

impl Sleep {
    pub fn new(now: Instant) -> Sleep {
        Sleep {
            hibernation: asked_for().map(|after| Hibernation::new(Blocks, after, now)),
            idle_for: Duration::ZERO,
            noticed_at: now,
        }
    }

    /// At each tick.
    pub fn notice(&mut self, now: Instant, idle_for: Duration) {
        let passed = now.duration_since(self.noticed_at);
        hibernation::note_time(passed, !idle_for.is_zero());
        self.noticed_at = now;
        self.idle_for = idle_for;
    }

    /// Answers how long the next step may wait; `None`: until the next tick.
    pub fn step(&mut self) -> Option<Duration> {
        let machine = self.hibernation.as_mut()?;
        let view = View {
            now: Instant::now(),
            idle_for: self.idle_for,
            usage: usage::of_program(),
            marked: hibernation::take_mark(),
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

/// The idle time asked for.
fn asked_for() -> Option<Duration> {
    let Hibernate::AfterSeconds(seconds) = config::settings().hibernate else {
        return None;
    };
    if !paging::is_possible() {
        say::info(format_args!(
            "FLARENA_HIBERNATE={seconds}: not on this system (it takes Linux 5.14 and a readable /proc/self/pagemap)"
        ));
        return None;
    }
    if swap::room_bytes() == 0 {
        say::info(format_args!(
            "FLARENA_HIBERNATE={seconds}: nothing to be done until there is swap that this process may use"
        ));
    }
    Some(Duration::from_secs(seconds.into()))
}
