//! Decides when a garbage collection of Python is due. Pure: bytes and times in, a decision out.
//!
//! A collection is due when large blocks have grown enough since the last one, and when it is affordable.
//! Each released MB is worth some CPU time. So the part of a collection's cost that its memory does not pay may take
//! one share of the time, and all collections together a larger share. The expected cost is that of the last
//! collection, and the expected release is the same part of the growth as last time. Growth that turns out to be
//! no garbage raises the growth that the next request needs.
//!
//! Stages and the governor request collections of the young objects and of all objects. Each of these four has its own
//! back-off and at most one pending request.

use flarena_shared::backoff::Backoff;
use flarena_sys::proc::sharing::Sizes;

/// The growth that makes a collection due: a part of what was live after the last one, within
/// bounds.
struct Rule {
    growth_permille: u64,
    least_growth_bytes: u64,
    most_growth_bytes: u64,
}

/// The release that makes a collection worth its time: at least so much, and so much of the
/// growth.
struct Worth {
    released_bytes: u64,
    released_permille: u64,
}

// All constants of the policy. docs/garbage.md describes their effect.

/// A stage is a cheap moment: cycles are young there, and the program expects a pause.
const STAGE: Rule = Rule {
    growth_permille: 125,
    least_growth_bytes: 16 << 20,
    most_growth_bytes: 32 << 20,
};
/// A short pause. The program may go on at any moment.
const IDLE: Rule = Rule {
    growth_permille: 250,
    least_growth_bytes: 64 << 20,
    most_growth_bytes: u64::MAX,
};
/// The alternative may be that the kernel kills the process.
const NEAR_LIMIT: Rule = Rule {
    growth_permille: 0,
    least_growth_bytes: 16 << 20,
    most_growth_bytes: u64::MAX,
};

/// By depth. A collection of the young objects takes less than a millisecond.
const WORTH: [Worth; 2] = [
    Worth {
        released_bytes: 1 << 20,
        released_permille: 0,
    },
    Worth {
        released_bytes: 4 << 20,
        released_permille: 100,
    },
];

// A rest is a time without work and without stages. It may begin with the stage before it.

/// Shortest rest. The back-off multiplies the time from one request to the next.
const LEAST_REST_US: u64 = 5_000_000;
/// A collection so soon before or after a stage belongs to the stage.
const AT_STAGE_US: u64 = 500_000;
/// At rest, less in large blocks is not worth a collection.
const LEAST_LIVE_BYTES: u64 = 16 << 20;
/// So much of the time that the rest will earn may be spent before it.
const BORROWED_US: i64 = 250_000;

/// Share of the time for the cost that the released memory does not pay.
const UNPAID_PERCENT: u64 = 1;
/// Share of the time for all requested collections together.
const PERCENT: u64 = 5;
/// The CPU time that a released MB is worth. A quarter of it is the page faults of the blocks to come, which find the
/// memory in the cache.
const WORTH_US_PER_MB: u64 = 1000;
/// The credits hold at most the shares of this time, so that a quiet hour is not spent within one minute.
const LONGEST_SAVED_US: u64 = 100_000_000;
/// Limit of the back-off: the growth that a request needs is multiplied by at most this.
const LARGEST_FACTOR: u64 = 1 << 10;
/// A collection may make so much of the process's memory private at most.
const UNSHARED_PERMILLE: u64 = 100;
/// Python's objects hardly fit into less. With less in pymalloc they are elsewhere.
const LEAST_PYMALLOC_BYTES: u64 = 1 << 20;

/// True if a full collection may raise the memory of a process that shares memory by too much.
///
/// A page that `n` processes share counts with `1/n` of its size here. So if all of them collect, their
/// sum rises by this share at most.
pub fn ends_sharing(sizes: Sizes, pymalloc_bytes: Option<u64>) -> bool {
    let shared = sizes.anon_bytes.saturating_sub(sizes.pss_anon_bytes);
    // A collection writes to the headers of objects, never to the data of arrays.
    let unshared = match pymalloc_bytes {
        Some(bytes) if bytes >= LEAST_PYMALLOC_BYTES => shared.min(bytes),
        _ => shared,
    };
    unshared > sizes.pss_bytes / 1000 * UNSHARED_PERMILLE
}

/// The reason to ask for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program passes a stage, or writes a marker.
    Stage(Depth),
    /// The same, and it waits after that. Or it trims.
    BeforeWait,
    /// The program works. A full collection only if it has no stages, which are better moments.
    Working(Depth),
    /// The program waits.
    Idle,
    /// The program has waited for this time.
    Resting { idle_us: u64 },
    /// Little is left of the memory limit.
    NearLimit,
}

/// The party that requests collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Party {
    Stages,
    Governor,
}

/// The objects that a collection examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Those that survived few collections. They are few, and most of the garbage of the last seconds is among them.
    Young,
    Full,
}

/// A request is known by its party and its depth.
pub type Requester = (Party, Depth);

/// A collection that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Collection {
    pub depth: Depth,
    /// Bytes in large blocks before it.
    pub live_before_bytes: u64,
    /// Bytes in large blocks after it.
    pub live_after_bytes: u64,
    /// Its CPU time: on a busy machine the elapsed time says little about the cost.
    pub cost_us: u64,
}

impl Collection {
    pub fn released_bytes(&self) -> u64 {
        self.live_before_bytes.saturating_sub(self.live_after_bytes)
    }
}

/// The part of a cost that the released memory does not pay.
fn unpaid_us(cost_us: u64, released_bytes: u64) -> u64 {
    cost_us.saturating_sub((released_bytes >> 20).saturating_mul(WORTH_US_PER_MB))
}

/// The policy's knowledge of the collections of this process. Times are microseconds of one
/// monotonic clock.
///
/// Fields are plain numbers, so that the child of a fork can use a copy that was taken in the
/// middle of a change.
pub struct CollectionPolicy {
    /// By depth.
    last: [Last; 2],
    has_seen_full: bool,
    collected_at_us: u64,
    /// When the program passed its last stage.
    stage_at_us: Option<u64>,
    /// When the last request at rest was granted.
    asked_at_rest_us: Option<u64>,
    /// Multiplies the time from one request at rest to the next.
    rest_factor: Backoff<u64>,
    /// Time that unpaid costs may take now, and all costs. Negative after a collection that took more.
    unpaid_credit_us: i64,
    credit_us: i64,
    /// When the credits were last raised.
    credited_at_us: Option<u64>,
    /// By party and depth.
    requests: [[Requests; 2]; 2],
}

/// The last collection of one depth, by which the next one is judged.
#[derive(Clone, Copy)]
struct Last {
    /// The growth counts from here. Of a full one: what was live after it. Of a young one: the least since the last
    /// collection of either depth. A program that frees its model at a stage has much room for garbage below the size
    /// after that collection.
    live_bytes: u64,
    cost_us: u64,
    /// The released part of the growth. All of it until a collection has shown a smaller part.
    garbage_permille: u64,
}

/// The requests of one party for one depth.
#[derive(Clone, Copy)]
struct Requests {
    /// Multiplies the growth that the next request needs.
    factor: Backoff<u64>,
    pending: Option<Pending>,
}

/// A request that was granted, and the collections that ended in the meantime.
#[derive(Clone, Copy, Default)]
struct Pending {
    is_at_rest: bool,
    /// It is a full one, and none was seen before it.
    is_first: bool,
    collections: u64,
    was_worthwhile: bool,
    cost_us: u64,
    unpaid_us: u64,
}

impl Reason {
    /// The requester, and the growth that makes a collection due.
    fn row(self) -> (Party, Depth, Option<&'static Rule>) {
        match self {
            Reason::Stage(depth) => (Party::Stages, depth, Some(&STAGE)),
            Reason::BeforeWait => (Party::Stages, Depth::Full, Some(&STAGE)),
            Reason::Working(Depth::Young) => (Party::Governor, Depth::Young, Some(&STAGE)),
            Reason::Working(Depth::Full) => (Party::Governor, Depth::Full, Some(&IDLE)),
            Reason::Idle => (Party::Governor, Depth::Full, Some(&IDLE)),
            Reason::NearLimit => (Party::Governor, Depth::Full, Some(&NEAR_LIMIT)),
            Reason::Resting { .. } => (Party::Governor, Depth::Full, None),
        }
    }

    pub fn requester(self) -> Requester {
        let (party, depth, _) = self.row();
        (party, depth)
    }

    pub fn depth(self) -> Depth {
        self.requester().1
    }
}

impl Rule {
    fn due_growth_bytes(&self, live_after_last_bytes: u64) -> u64 {
        (live_after_last_bytes / 1000 * self.growth_permille)
            .clamp(self.least_growth_bytes, self.most_growth_bytes)
    }
}

impl Last {
    const NONE: Last = Last {
        live_bytes: 0,
        cost_us: 0,
        garbage_permille: 1000,
    };
}

impl CollectionPolicy {
    pub const fn new() -> CollectionPolicy {
        CollectionPolicy {
            last: [Last::NONE; 2],
            has_seen_full: false,
            collected_at_us: 0,
            stage_at_us: None,
            asked_at_rest_us: None,
            rest_factor: Backoff::between(1, LARGEST_FACTOR),
            unpaid_credit_us: 0,
            credit_us: 0,
            credited_at_us: None,
            requests: [[Requests::NONE; 2]; 2],
        }
    }

    /// Grants a collection if one is due. The caller must then call [`Self::finish`] or
    /// [`Self::withdraw`].
    pub fn request(&mut self, reason: Reason, live_bytes: u64, now_us: u64) -> bool {
        self.earn(now_us);
        let young = self.last(Depth::Young);
        young.live_bytes = young.live_bytes.min(live_bytes);
        let young_cost_us = young.cost_us;
        let (party, depth, rule) = reason.row();
        let requester = (party, depth);
        let has_better_moments =
            reason == Reason::Working(Depth::Full) && self.stage_at_us.is_some();
        if requester == (Party::Stages, Depth::Full) {
            self.stage_at_us = Some(now_us);
        }
        let last = self.last(depth);
        let before_bytes = last.live_bytes;
        let growth_bytes = live_bytes.saturating_sub(before_bytes);
        let expected_bytes = growth_bytes / 1000 * last.garbage_permille;
        let unpaid_us = unpaid_us(last.cost_us, expected_bytes);
        // Without time for the young objects there is none for all.
        let cost_us = last.cost_us.max(young_cost_us);
        let waits = reason == Reason::BeforeWait;
        let borrowed_us = if waits { BORROWED_US } else { 0 };
        let is_affordable = self.credit_us + borrowed_us >= cost_us as i64
            && (unpaid_us == 0 || self.unpaid_credit_us + borrowed_us >= unpaid_us as i64);
        let factor = self.requests(requester).factor.value();
        let needed_bytes = rule.map(|rule| rule.due_growth_bytes(before_bytes));
        let has_grown = !has_better_moments
            && needed_bytes.is_some_and(|bytes| growth_bytes >= bytes.saturating_mul(factor));
        let rest_began_us = self.rest_began_us(reason, now_us);
        let is_at_rest = !has_grown
            && live_bytes >= LEAST_LIVE_BYTES
            && rest_began_us.is_some_and(|began_us| self.is_new_rest(began_us, now_us));
        let is_due = has_grown || is_at_rest;
        if !is_due || !is_affordable || self.is_pending(requester) {
            return false;
        }
        if is_at_rest {
            self.asked_at_rest_us = Some(now_us);
        }
        self.requests(requester).pending = Some(Pending {
            is_at_rest,
            is_first: !self.has_seen_full && depth == Depth::Full,
            ..Pending::default()
        });
        true
    }

    /// At stages one collection of either kind may run at a time. A thread may pass one while another
    /// collects, and so may a finalizer.
    fn is_pending(&self, (party, depth): Requester) -> bool {
        let [stages, governor] = &self.requests;
        match party {
            Party::Stages => stages.iter().any(|one| one.pending.is_some()),
            Party::Governor => governor[depth as usize].pending.is_some(),
        }
    }

    fn last(&mut self, depth: Depth) -> &mut Last {
        &mut self.last[depth as usize]
    }

    fn requests(&mut self, (party, depth): Requester) -> &mut Requests {
        &mut self.requests[party as usize][depth as usize]
    }

    /// When the rest of the program began; `None` if it does not rest.
    fn rest_began_us(&self, reason: Reason, now_us: u64) -> Option<u64> {
        let (began_us, earliest_us) = match reason {
            Reason::BeforeWait => (now_us, self.collected_at_us + AT_STAGE_US),
            Reason::Resting { idle_us } => {
                let idle_since_us = now_us.saturating_sub(idle_us);
                let began_us = idle_since_us.max(self.stage_at_us.unwrap_or(0));
                (began_us, began_us + LEAST_REST_US)
            }
            Reason::Stage(_) | Reason::Working(_) | Reason::Idle | Reason::NearLimit => {
                return None
            }
        };
        (now_us >= earliest_us).then_some(began_us)
    }

    /// True if the program was not collected in this rest.
    fn is_new_rest(&self, began_us: u64, now_us: u64) -> bool {
        let pause_us = LEAST_REST_US * self.rest_factor.value();
        began_us + AT_STAGE_US > self.collected_at_us
            && self
                .asked_at_rest_us
                .is_none_or(|asked_us| began_us > asked_us && now_us >= asked_us + pause_us)
    }

    /// Takes note of a collection, whether it was requested or not.
    pub fn observe(&mut self, collection: Collection, now_us: u64) {
        let Collection { depth, cost_us, .. } = collection;
        let released_bytes = collection.released_bytes();
        let worth = &WORTH[depth as usize];
        // The first full collection finds what the program left behind at its start. It says nothing about the
        // growth to come.
        let is_first = depth == Depth::Full && !self.has_seen_full;
        let last = self.last(depth);
        let growth_bytes = collection.live_before_bytes.saturating_sub(last.live_bytes);
        if !is_first && growth_bytes >= worth.released_bytes {
            last.garbage_permille = (released_bytes * 1000 / growth_bytes).min(1000);
        }
        last.cost_us = cost_us;
        last.live_bytes = collection.live_after_bytes;
        self.last(Depth::Young).live_bytes = collection.live_after_bytes;
        let was_worthwhile = released_bytes >= worth.released_bytes
            && released_bytes >= growth_bytes / 1000 * worth.released_permille;
        for of_party in &mut self.requests {
            // Young objects are a part of all.
            for requests in &mut of_party[..=depth as usize] {
                requests.observe(cost_us, released_bytes, was_worthwhile);
            }
        }
        if depth == Depth::Full {
            if was_worthwhile {
                self.rest_factor.reset();
            }
            self.has_seen_full = true;
            self.collected_at_us = now_us;
        }
        self.earn(now_us);
    }

    /// The granted request is over. Without a collection in the meantime the program has refused
    /// it.
    pub fn finish(&mut self, requester: Requester) {
        let Some(pending) = self.requests(requester).pending.take() else {
            return;
        };
        let says_nothing = pending.is_first && pending.collections > 0;
        if !pending.was_worthwhile && !says_nothing {
            if pending.is_at_rest {
                self.rest_factor.lengthen();
            } else {
                self.requests(requester).factor.lengthen();
            }
        }
        self.credit_us -= pending.cost_us as i64;
        self.unpaid_credit_us -= pending.unpaid_us as i64;
    }

    /// The granted request could not be carried out here and now. It has no consequences.
    pub fn withdraw(&mut self, requester: Requester) {
        self.requests(requester).pending = None;
    }

    /// Forgets all pending requests.
    pub fn withdraw_all(&mut self) {
        for requests in self.requests.as_flattened_mut() {
            requests.pending = None;
        }
    }

    /// Counts growth from these live bytes on: the child of a fork has not allocated what it inherits.
    pub fn forget_growth(&mut self, live_bytes: u64) {
        for last in &mut self.last {
            last.live_bytes = last.live_bytes.max(live_bytes);
        }
    }

    /// Adds the shares of the time since the last call to the credits.
    fn earn(&mut self, now_us: u64) {
        let since = self.credited_at_us.replace(now_us).unwrap_or(now_us);
        let passed_us = now_us.saturating_sub(since);
        let full_cost_us = self.last(Depth::Full).cost_us;
        for (credit_us, percent) in [
            (&mut self.unpaid_credit_us, UNPAID_PERCENT),
            (&mut self.credit_us, PERCENT),
        ] {
            // A collection that is dearer must become affordable, too.
            let largest_us = (LONGEST_SAVED_US * percent / 100).max(full_cost_us);
            let earned_us = (passed_us * percent / 100) as i64;
            *credit_us = (*credit_us + earned_us).min(largest_us as i64);
        }
    }
}

impl Requests {
    const NONE: Requests = Requests {
        factor: Backoff::between(1, LARGEST_FACTOR),
        pending: None,
    };

    fn observe(&mut self, cost_us: u64, released_bytes: u64, was_worthwhile: bool) {
        if was_worthwhile {
            self.factor.reset();
        }
        if let Some(pending) = &mut self.pending {
            pending.collections += 1;
            pending.was_worthwhile |= was_worthwhile;
            pending.cost_us += cost_us;
            pending.unpaid_us += unpaid_us(cost_us, released_bytes);
        }
    }
}

#[cfg(test)]
mod tests;
