//! Decides when a full garbage collection is due. Pure: bytes and times in, a decision out.
//!
//! A collection is due when large blocks have grown enough since the last one, and when the
//! collections so far have left enough of their share of the time. Each is charged its cost less the
//! worth of the memory that it released, so collections that pay may take several times that share.
//! Growth that turns out to be no garbage raises the growth that the next request needs.
//!
//! Python divides its objects by age. A collection of the young ones costs a hundredth of a full one and
//! finds most of the garbage of the last seconds. So it comes first, and a full one follows if blocks
//! have still grown since the last full one.
//!
//! A program that rests is also collected without growth, once per rest: blocks that were in use at the
//! last collection may be garbage now, and it drops none at rest.
//!
//! The stages of a program and the governor request both kinds of collections, and the governor also
//! full ones at rest. Each of these five has its own back-off and at most one pending request. The
//! time budget is common to all.

use flarena_shared::backoff::Backoff;
use flarena_sys::proc::sharing::Sizes;

/// All constants of the policy.
struct Table {
    stage: Rule,
    idle: Rule,
    rest: RestRule,
    near_limit: Rule,
    young: Worth,
    at_stages: Worth,
    by_governor: Worth,
    at_rest: Worth,
    /// Share of the time that all requested collections together may be charged.
    time_percent: u64,
    /// The CPU time that a released MB is worth.
    worth_us_per_mb: u64,
    /// A collection is charged at least this part of its cost, whatever it released.
    least_charge_percent: u64,
    /// Largest unused part of that share, so that a quiet hour is not spent within one minute.
    largest_credit_us: u64,
    /// Limit of the back-off: the growth that a request needs is multiplied by at most this.
    largest_factor: u64,
    /// A collection may make so much of the process's memory private at most.
    unshared_permille: u64,
}

/// The growth that makes a collection due: a part of what was live after the last one, within
/// bounds.
struct Rule {
    growth_permille: u64,
    least_growth_bytes: u64,
    most_growth_bytes: u64,
}

/// A rest is a time without work and without stages.
struct RestRule {
    /// Shortest rest. The back-off multiplies the time from one request to the next.
    least_us: u64,
    /// A collection so soon after a stage belongs to the stage.
    stage_us: u64,
    /// Less in large blocks is not worth a collection.
    least_live_bytes: u64,
}

/// The release that makes a collection worth its time: at least so much, and so much of the
/// growth.
struct Worth {
    released_bytes: u64,
    released_permille: u64,
}

/// docs/garbage.md describes the effect.
const TABLE: Table = Table {
    // A stage is a cheap moment: cycles are young there, and the program expects a pause.
    stage: Rule {
        growth_permille: 125,
        least_growth_bytes: 16 << 20,
        most_growth_bytes: 32 << 20,
    },
    // A short pause. The program may go on at any moment.
    idle: Rule {
        growth_permille: 250,
        least_growth_bytes: 64 << 20,
        most_growth_bytes: u64::MAX,
    },
    rest: RestRule {
        least_us: 5_000_000,
        stage_us: 500_000,
        least_live_bytes: 16 << 20,
    },
    // The alternative may be that the kernel kills the process.
    near_limit: Rule {
        growth_permille: 0,
        least_growth_bytes: 16 << 20,
        most_growth_bytes: u64::MAX,
    },
    // Of less than a millisecond.
    young: Worth {
        released_bytes: 1 << 20,
        released_permille: 0,
    },
    at_stages: Worth {
        released_bytes: 4 << 20,
        released_permille: 100,
    },
    by_governor: Worth {
        released_bytes: 16 << 20,
        released_permille: 0,
    },
    at_rest: Worth {
        released_bytes: 4 << 20,
        released_permille: 0,
    },
    time_percent: 1,
    // A quarter of it is the page faults of the blocks to come, which find the memory in the cache.
    worth_us_per_mb: 1000,
    // So all collections together take at most a twentieth of the time.
    least_charge_percent: 20,
    largest_credit_us: 1_000_000,
    largest_factor: 1 << 10,
    unshared_permille: 100,
};

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
    unshared > sizes.pss_bytes / 1000 * TABLE.unshared_permille
}

/// The reason to ask for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program passes a stage, a marker or a trim.
    Stage,
    /// The same, for a collection of the young objects.
    StageYoung,
    /// The program works, for a collection of the young objects.
    Working,
    /// The program waits.
    Idle,
    /// The program has waited for this time.
    Resting { idle_us: u64 },
    /// Little is left of the memory limit.
    NearLimit,
}

/// The party that requests a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    Stages,
    StagesYoung,
    Governor,
    GovernorYoung,
    GovernorAtRest,
}

impl Requester {
    pub const ALL: [Requester; 5] = [
        Requester::Stages,
        Requester::StagesYoung,
        Requester::GovernorYoung,
        Requester::Governor,
        Requester::GovernorAtRest,
    ];
}

/// The objects that a collection examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Those that survived few collections.
    Young,
    Full,
}

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

    /// The cost less the worth of the released bytes.
    fn charge_us(&self) -> u64 {
        let worth_us = (self.released_bytes() >> 20).saturating_mul(TABLE.worth_us_per_mb);
        let least_us = self.cost_us / 100 * TABLE.least_charge_percent;
        self.cost_us.saturating_sub(worth_us).max(least_us)
    }
}

/// The policy's knowledge of the collections of this process. Times are microseconds of one
/// monotonic clock.
///
/// Fields are plain numbers, so that the child of a fork can use a copy that was taken in the
/// middle of a change.
pub struct CollectionPolicy {
    /// After the last full collection.
    live_after_last_bytes: u64,
    /// The fewest live bytes at a request since the last collection of either kind. A program that frees
    /// its model at a stage has much room for garbage below the size after that collection.
    lowest_live_bytes: u64,
    last_young_charge_us: u64,
    /// The charge of the last full collection, which is the expected one of the next.
    last_charge_us: u64,
    has_seen_collection: bool,
    collected_at_us: u64,
    /// When the program passed its last stage.
    stage_at_us: u64,
    /// When the last request at rest was granted.
    asked_at_rest_us: Option<u64>,
    /// Time that collections may take now. Negative after one that took more than was left.
    credit_us: i64,
    /// When the credit was last raised.
    credited_at_us: Option<u64>,
    stages: Requests,
    stages_young: Requests,
    governor: Requests,
    governor_young: Requests,
    governor_at_rest: Requests,
}

/// The requests of one party.
struct Requests {
    /// Multiplies the growth that the next request needs.
    factor: Backoff<u64>,
    pending: Option<Pending>,
}

/// A request that was granted, and the collections that ended in the meantime.
#[derive(Clone, Copy)]
struct Pending {
    /// It is a full one, and none was seen before it.
    is_first: bool,
    collections: u64,
    was_worthwhile: bool,
    charge_us: u64,
}

impl Reason {
    pub fn requester(self) -> Requester {
        match self {
            Reason::Stage => Requester::Stages,
            Reason::StageYoung => Requester::StagesYoung,
            Reason::Working => Requester::GovernorYoung,
            Reason::Idle | Reason::NearLimit => Requester::Governor,
            Reason::Resting { .. } => Requester::GovernorAtRest,
        }
    }

    pub fn depth(self) -> Depth {
        match self {
            Reason::StageYoung | Reason::Working => Depth::Young,
            _ => Depth::Full,
        }
    }

    /// The rule of growth; `None` at rest.
    fn rule(self) -> Option<&'static Rule> {
        match self {
            Reason::Stage | Reason::StageYoung | Reason::Working => Some(&TABLE.stage),
            Reason::Idle => Some(&TABLE.idle),
            Reason::NearLimit => Some(&TABLE.near_limit),
            Reason::Resting { .. } => None,
        }
    }
}

impl Rule {
    fn due_growth_bytes(&self, live_after_last_bytes: u64) -> u64 {
        (live_after_last_bytes / 1000 * self.growth_permille)
            .clamp(self.least_growth_bytes, self.most_growth_bytes)
    }
}

impl Worth {
    fn is_met(&self, released_bytes: u64, growth_bytes: u64) -> bool {
        released_bytes >= self.released_bytes
            && released_bytes >= growth_bytes / 1000 * self.released_permille
    }
}

impl CollectionPolicy {
    pub const fn new() -> CollectionPolicy {
        CollectionPolicy {
            live_after_last_bytes: 0,
            lowest_live_bytes: 0,
            last_young_charge_us: 0,
            last_charge_us: 0,
            has_seen_collection: false,
            collected_at_us: 0,
            stage_at_us: 0,
            asked_at_rest_us: None,
            credit_us: 0,
            credited_at_us: None,
            stages: Requests::new(),
            stages_young: Requests::new(),
            governor: Requests::new(),
            governor_young: Requests::new(),
            governor_at_rest: Requests::new(),
        }
    }

    /// Grants a collection if one is due. The caller must then call [`Self::finish`] or
    /// [`Self::withdraw`].
    pub fn request(&mut self, reason: Reason, live_bytes: u64, now_us: u64) -> bool {
        self.earn(now_us);
        self.lowest_live_bytes = self.lowest_live_bytes.min(live_bytes);
        if reason == Reason::Stage {
            self.stage_at_us = now_us;
        }
        if self.is_pending(reason.requester()) {
            return false;
        }
        let factor = self.requests(reason.requester()).factor.value();
        let is_due = match reason {
            Reason::Resting { idle_us } => {
                live_bytes >= TABLE.rest.least_live_bytes
                    && self.is_new_rest(now_us, idle_us, factor)
            }
            _ => self.has_grown(reason, live_bytes, factor),
        };
        if !is_due || self.credit_us < self.expected_charge_us(reason.depth()) as i64 {
            return false;
        }
        if let Reason::Resting { .. } = reason {
            self.asked_at_rest_us = Some(now_us);
        }
        let is_first = !self.has_seen_collection && reason.depth() == Depth::Full;
        self.requests(reason.requester()).pending = Some(Pending {
            is_first,
            collections: 0,
            was_worthwhile: false,
            charge_us: 0,
        });
        true
    }

    /// At stages one collection of either kind may run at a time. A thread may pass one while another
    /// collects, and so may a finalizer.
    fn is_pending(&mut self, requester: Requester) -> bool {
        let pending = match requester {
            Requester::Stages | Requester::StagesYoung => {
                self.stages.pending.or(self.stages_young.pending)
            }
            other => self.requests(other).pending,
        };
        pending.is_some()
    }

    fn has_grown(&self, reason: Reason, live_bytes: u64, factor: u64) -> bool {
        let before = match reason.depth() {
            Depth::Young => self.lowest_live_bytes,
            Depth::Full => self.live_after_last_bytes,
        };
        let growth = live_bytes.saturating_sub(before);
        let rule = reason.rule();
        rule.is_some_and(|rule| growth >= rule.due_growth_bytes(before).saturating_mul(factor))
    }

    fn expected_charge_us(&self, depth: Depth) -> u64 {
        match depth {
            Depth::Young => self.last_young_charge_us,
            // Without time for the young objects there is none for all.
            Depth::Full => self.last_charge_us.max(self.last_young_charge_us),
        }
    }

    /// True if the program rests, and was not collected in this rest.
    fn is_new_rest(&self, now_us: u64, idle_us: u64, factor: u64) -> bool {
        let began_us = now_us.saturating_sub(idle_us).max(self.stage_at_us);
        let pause_us = TABLE.rest.least_us.saturating_mul(factor);
        now_us - began_us >= TABLE.rest.least_us
            && began_us + TABLE.rest.stage_us > self.collected_at_us
            && self
                .asked_at_rest_us
                .is_none_or(|asked_us| began_us > asked_us && now_us - asked_us >= pause_us)
    }

    /// Takes note of a collection, whether it was requested or not.
    pub fn observe(&mut self, collection: Collection, now_us: u64) {
        self.lowest_live_bytes = collection.live_after_bytes;
        match collection.depth {
            Depth::Young => self.observe_young(collection),
            Depth::Full => self.observe_full(collection, now_us),
        }
        self.earn(now_us);
    }

    fn observe_young(&mut self, collection: Collection) {
        let is_worthwhile = TABLE.young.is_met(collection.released_bytes(), 0);
        self.last_young_charge_us = collection.charge_us();
        for requests in [&mut self.stages_young, &mut self.governor_young] {
            requests.observe(self.last_young_charge_us, is_worthwhile);
        }
    }

    fn observe_full(&mut self, collection: Collection, now_us: u64) {
        let (released, charge_us) = (collection.released_bytes(), collection.charge_us());
        let growth = collection
            .live_before_bytes
            .saturating_sub(self.live_after_last_bytes);
        for (requests, worth) in [
            (&mut self.stages, &TABLE.at_stages),
            (&mut self.stages_young, &TABLE.at_stages),
            (&mut self.governor, &TABLE.by_governor),
            (&mut self.governor_young, &TABLE.by_governor),
            (&mut self.governor_at_rest, &TABLE.at_rest),
        ] {
            requests.observe(charge_us, worth.is_met(released, growth));
        }
        self.has_seen_collection = true;
        self.collected_at_us = now_us;
        self.live_after_last_bytes = collection.live_after_bytes;
        self.last_charge_us = charge_us;
    }

    /// The granted request is over. Without a collection in the meantime the program has refused
    /// it.
    pub fn finish(&mut self, requester: Requester) {
        let requests = self.requests(requester);
        let Some(pending) = requests.pending.take() else {
            return;
        };
        // The first collection finds what the program left behind at its start. It says nothing
        // about the growth to come.
        let says_nothing = pending.is_first && pending.collections > 0;
        if !pending.was_worthwhile && !says_nothing {
            requests.factor.lengthen();
        }
        self.credit_us -= pending.charge_us as i64;
    }

    /// The granted request could not be carried out here and now. It has no consequences.
    pub fn withdraw(&mut self, requester: Requester) {
        self.requests(requester).pending = None;
    }

    /// Counts growth from these live bytes on: the child of a fork has not allocated what it inherits.
    pub fn forget_growth(&mut self, live_bytes: u64) {
        self.live_after_last_bytes = self.live_after_last_bytes.max(live_bytes);
        self.lowest_live_bytes = self.lowest_live_bytes.max(live_bytes);
    }

    fn requests(&mut self, requester: Requester) -> &mut Requests {
        match requester {
            Requester::Stages => &mut self.stages,
            Requester::StagesYoung => &mut self.stages_young,
            Requester::GovernorYoung => &mut self.governor_young,
            Requester::Governor => &mut self.governor,
            Requester::GovernorAtRest => &mut self.governor_at_rest,
        }
    }

    /// Adds the share of the time since the last call to the credit.
    fn earn(&mut self, now_us: u64) {
        let since = self.credited_at_us.replace(now_us).unwrap_or(now_us);
        let earned = now_us.saturating_sub(since) * TABLE.time_percent / 100;
        let largest = TABLE.largest_credit_us.max(self.last_charge_us);
        self.credit_us = (self.credit_us + earned as i64).min(largest as i64);
    }
}

impl Requests {
    const fn new() -> Requests {
        Requests {
            factor: Backoff::between(1, TABLE.largest_factor),
            pending: None,
        }
    }

    fn observe(&mut self, charge_us: u64, was_worthwhile: bool) {
        if was_worthwhile {
            self.factor.reset();
        }
        if let Some(pending) = &mut self.pending {
            pending.collections += 1;
            pending.was_worthwhile |= was_worthwhile;
            pending.charge_us += charge_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;
    const SECOND_US: u64 = 1_000_000;

    /// A simulated program: live bytes, of which some are garbage, and a clock.
    struct Program {
        policy: CollectionPolicy,
        now_us: u64,
        live_bytes: u64,
        garbage_bytes: u64,
        /// Of young objects.
        young_garbage_bytes: u64,
        cost_us: u64,
        answer: Answer,
        /// Of requested collections.
        collections: u64,
        spent_us: u64,
    }

    /// The reaction to a request.
    #[derive(PartialEq)]
    enum Answer {
        Collect,
        Refuse,
        Never,
    }

    impl Program {
        fn new() -> Program {
            Program::with_cost(20_000)
        }

        fn with_cost(cost_us: u64) -> Program {
            let mut program = Program {
                policy: CollectionPolicy::new(),
                now_us: 0,
                live_bytes: 0,
                garbage_bytes: 0,
                young_garbage_bytes: 0,
                cost_us,
                answer: Answer::Collect,
                collections: 0,
                spent_us: 0,
            };
            program.policy.earn(0);
            program
        }

        fn hold(&mut self, mb: u64) {
            self.live_bytes += mb * MB;
        }

        fn drop_in_cycles(&mut self, mb: u64) {
            self.hold(mb);
            self.garbage_bytes += mb * MB;
        }

        /// True if a request was granted after this time.
        fn ask(&mut self, reason: Reason, after_us: u64) -> bool {
            self.now_us += after_us;
            if !self.policy.request(reason, self.live_bytes, self.now_us) {
                return false;
            }
            if self.answer == Answer::Collect {
                self.collect_at(reason.depth());
                self.collections += 1;
                self.spent_us += self.cost_of(reason.depth());
            }
            if self.answer != Answer::Never {
                self.policy.finish(reason.requester());
            }
            true
        }

        fn pass_stage(&mut self, after_seconds: u64) -> bool {
            self.ask(Reason::Stage, after_seconds * SECOND_US)
        }

        fn rest(&mut self) -> bool {
            self.ask(Reason::Idle, SECOND_US / 2)
        }

        /// Waits for so many seconds. Returns the number of requests that were granted.
        fn rest_long(&mut self, seconds: u64) -> usize {
            let idle = |second| Reason::Resting {
                idle_us: second * SECOND_US,
            };
            (1..=seconds)
                .filter(|&second| self.ask(idle(second), SECOND_US))
                .count()
        }

        fn work_near_limit(&mut self) -> bool {
            self.ask(Reason::NearLimit, SECOND_US / 2)
        }

        fn drop_young(&mut self, mb: u64) {
            self.hold(mb);
            self.young_garbage_bytes += mb * MB;
        }

        /// A full collection, as the program may also start it by itself.
        fn collect(&mut self) {
            self.collect_at(Depth::Full);
        }

        fn cost_of(&self, depth: Depth) -> u64 {
            match depth {
                Depth::Young => self.cost_us / 100,
                Depth::Full => self.cost_us,
            }
        }

        fn collect_at(&mut self, depth: Depth) {
            let live_before_bytes = self.live_bytes;
            self.live_bytes -= std::mem::take(&mut self.young_garbage_bytes);
            if depth == Depth::Full {
                self.live_bytes -= std::mem::take(&mut self.garbage_bytes);
            }
            let cost_us = self.cost_of(depth);
            self.now_us += cost_us;
            let collection = Collection {
                depth,
                live_before_bytes,
                live_after_bytes: self.live_bytes,
                cost_us,
            };
            self.policy.observe(collection, self.now_us);
        }
    }

    #[test]
    fn stage_is_collected_after_16_mb_of_growth() {
        let mut program = Program::new();
        assert!((0..100).all(|_| !program.pass_stage(1)));
        program.drop_in_cycles(15);
        assert!(!program.pass_stage(1));
        program.drop_in_cycles(1);
        assert!(program.pass_stage(1));
    }

    #[test]
    fn stage_is_collected_after_growth_by_an_eighth() {
        let mut program = Program::new();
        program.hold(200);
        assert!(program.pass_stage(1));
        program.drop_in_cycles(24);
        assert!(!program.pass_stage(100));
        program.drop_in_cycles(1);
        assert!(program.pass_stage(100));
        assert_eq!(program.live_bytes, 200 * MB);
    }

    #[test]
    fn stage_of_a_large_program_is_collected_after_32_mb_of_growth() {
        let mut program = Program::new();
        program.hold(10_000);
        assert!(program.pass_stage(1));
        program.drop_in_cycles(31);
        assert!(!program.pass_stage(100));
        program.drop_in_cycles(1);
        assert!(program.pass_stage(100));
        assert_eq!(program.live_bytes, 10_000 * MB);
    }

    #[test]
    fn rounds_that_drop_cycles_stay_flat_within_the_time_budget() {
        let (mut program, mut highest) = (Program::new(), 0);
        program.hold(300);
        for _ in 0..100 {
            program.drop_in_cycles(64);
            highest = highest.max(program.live_bytes);
            program.pass_stage(5);
        }
        assert!(highest <= (300 + 3 * 64) * MB, "{highest}");
        assert!(program.spent_us < program.now_us / 100);
    }

    #[test]
    fn growth_without_garbage_backs_off_at_stages() {
        let mut program = Program::new();
        for _ in 0..1000 {
            program.hold(64);
            program.pass_stage(5);
        }
        assert!(program.collections <= 12, "{}", program.collections);
    }

    #[test]
    fn one_worthwhile_collection_resets_the_back_off() {
        let mut program = Program::new();
        for _ in 0..5 {
            program.hold(1000);
            program.pass_stage(60);
        }
        let collections = program.collections;
        while program.collections == collections {
            program.drop_in_cycles(1000);
            program.pass_stage(60);
        }
        program.drop_in_cycles(32);
        assert!(program.pass_stage(60));
    }

    #[test]
    fn each_collection_between_two_requests_counts() {
        let mut program = Program::new();
        for _ in 0..5 {
            program.hold(1000);
            program.pass_stage(60);
        }
        assert!(program.policy.stages.factor.value() > 1);
        program.drop_in_cycles(1000);
        program.collect(); // the program's own, and worthwhile
        program.collect(); // and one that releases nothing
        assert_eq!(program.policy.stages.factor.value(), 1);
    }

    #[test]
    fn program_that_collects_by_itself_is_not_asked() {
        let mut program = Program::new();
        for _ in 0..50 {
            program.drop_in_cycles(15);
            assert!(!program.pass_stage(1));
            program.collect();
        }
    }

    #[test]
    fn useless_collections_of_the_program_keep_the_back_off() {
        let mut program = Program::new();
        for _ in 0..200 {
            program.hold(200);
            program.pass_stage(60);
            program.collect();
            program.live_bytes -= 200 * MB;
        }
        assert!(program.collections <= 12, "{}", program.collections);
    }

    /// The share of the time that collections take if each round of 100 ms drops so many MB in cycles and
    /// holds so many more.
    fn share_of_time(cost_us: u64, dropped_mb: u64, held_mb: u64) -> f64 {
        let mut program = Program::with_cost(cost_us);
        for _ in 0..20_000 {
            program.drop_in_cycles(dropped_mb);
            program.hold(held_mb);
            program.ask(Reason::Stage, SECOND_US / 10);
        }
        assert!(program.collections > 1);
        (program.spent_us - cost_us) as f64 / program.now_us as f64
    }

    #[test]
    fn without_garbage_collections_take_at_most_a_hundredth_of_the_time() {
        for cost_us in [1_000, 100_000, 3_000_000] {
            let share = share_of_time(cost_us, 0, 1000);
            assert!(share <= 0.01, "{cost_us}: {share}");
        }
    }

    #[test]
    fn collections_may_take_more_time_the_more_they_release_but_at_most_a_twentieth() {
        let shares = [16, 50, 1000].map(|mb| share_of_time(100_000, mb, 0));
        let limits = [0.010..0.022, 0.022..0.035, 0.035..0.05];
        for (share, limit) in shares.iter().zip(limits) {
            assert!(limit.contains(share), "{shares:?}");
        }
    }

    #[test]
    fn rounds_of_four_seconds_that_drop_a_model_are_each_collected() {
        let mut program = Program::with_cost(100_000);
        program.hold(300);
        for _ in 0..10 {
            program.drop_in_cycles(128);
            assert!(program.pass_stage(4));
        }
    }

    #[test]
    fn credit_of_a_quiet_day_is_limited() {
        let mut program = Program::with_cost(100_000);
        program.drop_in_cycles(1000);
        program.pass_stage(1);
        program.pass_stage(86_400);
        let spent_us = program.spent_us;
        for _ in 0..600 {
            program.drop_in_cycles(1000);
            program.ask(Reason::Stage, SECOND_US / 10);
        }
        let most_us = (TABLE.largest_credit_us + 120 * SECOND_US / 100) * 5;
        assert!(
            program.spent_us - spent_us <= most_us,
            "{}",
            program.spent_us
        );
    }

    #[test]
    fn young_garbage_needs_no_full_collection() {
        let mut program = Program::new();
        program.hold(300);
        assert!(program.pass_stage(1));
        program.now_us += 10 * SECOND_US;
        for _ in 0..100 {
            program.drop_young(64);
            assert!(program.ask(Reason::StageYoung, SECOND_US / 10));
            assert!(!program.pass_stage(0));
        }
        assert_eq!(program.live_bytes, 300 * MB);
    }

    #[test]
    fn old_garbage_is_collected_after_young_objects_were() {
        let mut program = Program::new();
        program.hold(300);
        assert!(program.pass_stage(1));
        program.drop_in_cycles(64);
        assert!(program.ask(Reason::StageYoung, 10 * SECOND_US));
        assert!(program.pass_stage(0));
        assert_eq!(program.live_bytes, 300 * MB);
    }

    #[test]
    fn garbage_below_the_last_size_is_growth_for_young_objects() {
        let mut program = Program::new();
        program.hold(300);
        assert!(program.ask(Reason::StageYoung, SECOND_US));
        program.live_bytes -= 200 * MB;
        assert!(!program.ask(Reason::StageYoung, SECOND_US));
        program.drop_young(64);
        assert!(program.ask(Reason::StageYoung, SECOND_US));
        assert_eq!(program.live_bytes, 100 * MB);
    }

    #[test]
    fn useless_collections_of_young_objects_become_rare_until_one_pays() {
        let mut program = Program::new();
        let mut asked = 0;
        for _ in 0..1000 {
            program.hold(64);
            asked += u32::from(program.ask(Reason::Working, SECOND_US / 2));
            program.live_bytes -= 64 * MB;
            asked += u32::from(program.ask(Reason::Working, SECOND_US / 2));
        }
        assert!(asked <= 10, "{asked}");
        program.drop_in_cycles(64);
        program.collect();
        program.drop_young(64);
        assert!(program.ask(Reason::Working, SECOND_US));
    }

    #[test]
    fn request_that_could_not_run_has_no_consequences() {
        let mut program = Program::new();
        program.drop_in_cycles(100);
        for _ in 0..10 {
            assert!(program.policy.request(Reason::Stage, program.live_bytes, 1));
            program.policy.withdraw(Requester::Stages);
        }
        assert!(program.pass_stage(1));
    }

    #[test]
    fn idle_program_that_grew_is_asked_once() {
        let mut program = Program::new();
        program.drop_in_cycles(200);
        assert!(program.rest());
        assert!((0..100).all(|_| !program.rest()));
        program.drop_in_cycles(63);
        assert!(!program.rest());
        program.drop_in_cycles(1);
        assert!(program.rest());
    }

    #[test]
    fn each_long_rest_gets_one_collection_without_growth() {
        let mut program = Program::new();
        program.hold(300);
        assert!(program.pass_stage(1));
        for _ in 0..20 {
            program.drop_in_cycles(32);
            assert!(program.pass_stage(5), "the stage collects");
            program.garbage_bytes = 5 * MB;
            assert_eq!(program.rest_long(4), 0);
            assert_eq!(program.rest_long(100), 1);
        }
        assert_eq!(program.live_bytes, 200 * MB);
    }

    #[test]
    fn stages_end_a_rest() {
        let mut program = Program::new();
        program.hold(300);
        assert!(program.pass_stage(1));
        for second in 1..100 {
            program.pass_stage(4);
            let idle_us = second * SECOND_US;
            assert!(!program.ask(Reason::Resting { idle_us }, SECOND_US / 2));
        }
    }

    #[test]
    fn small_program_and_one_that_has_collected_get_no_collection_at_rest() {
        let mut program = Program::new();
        program.hold(15);
        assert_eq!(program.rest_long(100), 0);
        program.hold(15);
        program.now_us += SECOND_US;
        program.collect();
        let idle_us = 10 * SECOND_US;
        assert!(!program.ask(Reason::Resting { idle_us }, 5 * SECOND_US));
    }

    #[test]
    fn useless_collections_at_rest_become_rare_and_do_not_delay_others() {
        let mut program = Program::new();
        program.hold(60);
        let collections: usize = (0..720).map(|_| program.rest_long(10)).sum();
        assert!(
            (2..=12).contains(&collections),
            "{collections} in two hours"
        );
        program.drop_in_cycles(16);
        assert!(program.work_near_limit());
    }

    #[test]
    fn near_the_limit_less_growth_is_enough() {
        let mut program = Program::new();
        program.hold(1000);
        assert!(program.work_near_limit());
        program.drop_in_cycles(16);
        let ticks = (1..).find(|_| program.work_near_limit());
        assert!(ticks < Some(10), "{ticks:?} ticks");
    }

    #[test]
    fn growth_without_garbage_near_the_limit_backs_off() {
        let mut program = Program::new();
        for _ in 0..2000 {
            program.hold(1);
            program.work_near_limit();
        }
        assert!(
            (2..=9).contains(&program.collections),
            "{}",
            program.collections
        );
    }

    #[test]
    fn unanswered_request_of_the_governor_is_not_repeated_and_stages_go_on() {
        let mut program = Program::new();
        program.answer = Answer::Never;
        program.drop_in_cycles(200);
        assert!(program.rest());
        assert!((0..100).all(|_| !program.rest() && !program.work_near_limit()));
        program.answer = Answer::Collect;
        assert!(program.pass_stage(1));
    }

    #[test]
    fn program_that_refuses_is_asked_less_and_less() {
        let mut program = Program::new();
        program.answer = Answer::Refuse;
        program.drop_in_cycles(1000);
        let asked = (0..1000).filter(|_| program.rest()).count();
        assert!((1..=8).contains(&asked), "{asked} times");
        let asked: usize = (0..1000).map(|_| program.rest_long(10)).sum();
        assert!((1..=12).contains(&asked), "{asked} times");
    }

    #[test]
    fn collection_that_ends_little_sharing_may_run() {
        let sizes = |pss, pss_anon, anon| Sizes {
            pss_bytes: pss * MB,
            pss_anon_bytes: pss_anon * MB,
            anon_bytes: anon * MB,
        };
        let worker = sizes(64, 60, 240);
        assert!(ends_sharing(worker, Some(230 * MB)));
        assert!(ends_sharing(worker, Some(0)), "objects beside pymalloc");
        assert!(!ends_sharing(worker, Some(6 * MB)), "arrays are shared");
        assert!(!ends_sharing(sizes(500, 480, 520), Some(230 * MB)));
        assert!(!ends_sharing(sizes(64, 60, 60), None));
    }

    #[test]
    fn child_of_a_fork_has_not_grown_yet() {
        let mut program = Program::new();
        program.hold(100);
        program.policy.forget_growth(program.live_bytes);
        assert!(!program.pass_stage(1));
        program.drop_in_cycles(16);
        assert!(program.pass_stage(1));
    }

    #[test]
    fn stages_and_governor_share_the_time_budget() {
        let mut program = Program::with_cost(500_000);
        for _ in 0..2000 {
            program.drop_in_cycles(100);
            program.work_near_limit();
            program.ask(Reason::Stage, SECOND_US / 2);
        }
        assert!(program.collections >= 5);
        let most_us = program.now_us / 20 + program.cost_us;
        assert!(program.spent_us <= most_us, "{}", program.spent_us);
    }
}
