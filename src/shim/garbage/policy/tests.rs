//! One table of situations and decisions, on a simulated program.

use super::*;

/// In pairs of lines: the sentence, and the steps. Times are seconds, sizes MB.
///
/// - `wait S`: so much time passes.
/// - `hold N`, `free N`: the program allocates, or frees.
/// - `drop N`: some of it becomes garbage of old objects. `litter N`, `young N`: it allocates garbage of old, or of
///   young objects.
/// - `cost MS`: a full collection takes so many milliseconds from now on, instead of 20; a young one a hundredth.
/// - `collect`, `fork`, `refuse`: the program collects everything by itself, forks, or refuses requests from now on.
/// - `yes R`, `no R`: a request for this reason is granted, or not. `ask R`: it may be.
/// - `withdraw R`, `unanswered R`: a request is granted, and then withdrawn, or never answered.
/// - `rest S`: the program waits, and is asked in each second.
/// - `granted A..B`: so many requests were granted since the last step of this name.
/// - `live A..B`, `highest A..B`: so much is in large blocks now, or was there at most.
/// - `spent A..B`, `percent A..B`: requested collections after the first took so much time, or part of it.
/// - `N { steps }`: so many times.
const SITUATIONS: &str = "
a stage is collected after 16 MB of growth
    100 { wait 1 no stage } litter 15 no stage litter 1 yes stage
a stage is collected after growth by an eighth
    hold 200 yes stage litter 24 wait 100 no stage litter 1 yes stage live 200..200
a stage of a large program is collected after 32 MB of growth
    hold 10000 yes stage litter 31 wait 100 no stage litter 1 yes stage live 10000..10000
rounds of four seconds that drop a model are each collected
    cost 100 hold 300 10 { litter 128 wait 4 yes stage }
rounds that drop cycles stay flat
    hold 300 100 { litter 64 wait 5 ask stage } highest 0..500 percent 0..1
a program that collects by itself is not asked
    50 { litter 15 wait 1 no stage collect }
the child of a fork has not grown yet
    hold 100 fork no stage litter 16 yes stage

young garbage needs no full collection
    hold 300 yes stage wait 10 100 { young 64 wait 0.1 yes stage-young no stage } live 300..300
old garbage is collected after young objects were
    hold 300 yes stage litter 64 wait 10 yes stage-young yes stage live 300..300
garbage below the last size is growth for young objects
    hold 300 yes stage-young free 200 wait 1 no stage-young young 64 yes stage-young live 100..100
useless collections of young objects become rare until one pays
    1000 { hold 64 wait 0.5 ask working free 64 wait 0.5 ask working } granted 1..10 litter 64 collect young 64 yes working

growth without garbage backs off at stages
    1000 { hold 64 wait 5 ask stage } granted 2..12
a worthwhile collection resets the back-off
    5 { hold 1000 wait 60 ask stage } 40 { litter 1000 wait 60 ask stage } litter 32 yes stage
of two collections between two requests the first counts, too
    5 { hold 1000 wait 60 ask stage } litter 1000 collect collect litter 32 yes stage
a useless collection of the program does not reset the back-off
    5 { hold 1000 wait 60 ask stage } collect litter 32 no stage
useless collections of the program keep the back-off
    200 { hold 200 wait 60 ask stage collect free 200 } granted 1..12

without garbage cheap collections take at most a hundredth of the time
    cost 1 20000 { hold 1000 wait 0.1 ask stage } granted 2..1000 percent 0..1
without garbage collections take at most a hundredth of the time
    cost 100 20000 { hold 1000 wait 0.1 ask stage } granted 2..1000 percent 0..1
without garbage dear collections take at most a hundredth of the time
    cost 3000 20000 { hold 1000 wait 0.1 ask stage } granted 2..1000 percent 0..1
garbage that pays a hundredth of the time raises their share to two
    cost 100 20000 { hold 8 litter 1 wait 0.1 ask stage } percent 1.5..2
garbage that pays is collected, in at most a twentieth of the time
    cost 100 20000 { litter 16 wait 0.1 ask stage } percent 4.5..5
a useless first collection does not delay those that pay
    cost 42 hold 100 yes stage 10 { litter 15 wait 0.4 ask stage } live 100..160 highest 100..180
a useless full collection does not delay those of young objects
    cost 200 hold 300 yes stage young 64 wait 5 yes stage-young live 300..300
a stage that has no time for the young objects has none for all
    cost 1 hold 300 yes stage cost 3000 young 64 wait 1 yes stage-young young 64 wait 0.1 no stage-young no stage
the credit of a quiet day is limited
    cost 100 litter 1000 yes stage wait 86400 600 { litter 1000 wait 0.1 ask stage } spent 5..9
stages and governor share the time
    cost 500 2000 { litter 100 wait 0.5 ask near-limit wait 0.5 ask stage } granted 5..300 percent 0..5

an idle program that grew is asked once
    litter 200 yes idle 100 { wait 0.5 no idle } litter 63 no idle litter 1 yes idle
each long rest gets one collection without growth
    hold 300 yes stage granted 1..1
    20 { litter 32 wait 5 yes stage drop 5 rest 4 granted 1..1 rest 100 granted 1..1 } live 200..200
a stage before a wait is collected without growth, and then the rest is not
    hold 300 yes stage 20 { litter 10 wait 6 no stage yes before-wait wait 4 no resting wait 4 no resting } live 300..300
a stage before a wait is not collected right after a collection
    hold 300 wait 10 collect wait 0.2 no before-wait
a stage before a wait borrows from the time of the wait
    cost 100 hold 300 yes stage litter 30 wait 1 no stage yes before-wait live 300..300
without garbage collections before waits take at most a hundredth of the time
    cost 100 20000 { hold 1000 wait 0.1 ask before-wait } granted 2..1000 percent 0..1.02
a stage before a wait that had no time for a collection leaves it to the governor
    cost 500 hold 300 yes stage drop 10 wait 3 no before-wait wait 120 yes resting
useless collections before waits become rare and do not delay others
    hold 60 720 { wait 10 ask before-wait } granted 2..12 litter 16 yes stage
stages end a rest
    hold 300 yes stage 100 { wait 4 no stage wait 0.5 no resting }
a busy program without stages is collected after growth by a quarter, and by 64 MB
    litter 63 no working-full hold 400 yes working-full litter 99 wait 10 no working-full litter 2 yes working-full live 400..400
a busy program with stages is not
    hold 400 yes stage litter 1000 wait 10 no working-full yes stage
useless collections of a busy program become rare
    cost 100 1000 { hold 100 wait 0.5 ask working-full } granted 2..9 percent 0..1
a small program gets no collection at rest
    hold 15 rest 100 granted 0..0
a program that was collected at rest gets no other collection at rest
    hold 30 wait 1 collect wait 5 no resting
useless collections at rest become rare and do not delay others
    hold 60 720 { rest 10 } granted 2..12 litter 16 yes near-limit
near the limit less growth is enough
    hold 1000 yes near-limit litter 16 10 { wait 0.5 ask near-limit } live 1000..1000
growth without garbage near the limit backs off
    2000 { hold 1 wait 0.5 ask near-limit } granted 2..9

a request that could not run has no consequences
    litter 100 10 { withdraw stage } yes stage
an unanswered request of the governor is not repeated, and stages go on
    litter 200 unanswered idle 100 { wait 0.5 no idle no near-limit } yes stage
at stages one request is pending at a time
    litter 200 unanswered stage-young no stage yes idle
a program that refuses is asked less and less
    refuse litter 1000 1000 { wait 0.5 ask idle } granted 1..8 1000 { rest 10 } granted 1..12
";

const MB: u64 = 1 << 20;

/// A simulated program: live bytes, of which some are garbage, and a clock.
struct Program {
    policy: CollectionPolicy,
    now_us: u64,
    live_bytes: u64,
    garbage_bytes: u64,
    young_garbage_bytes: u64,
    highest_bytes: u64,
    cost_us: u64,
    refuses: bool,
    granted: u64,
    /// On requested collections, without the first.
    spent_us: u64,
    has_spent: bool,
}

impl Program {
    fn new() -> Program {
        let mut policy = CollectionPolicy::new();
        policy.earn(0);
        Program {
            policy,
            now_us: 0,
            live_bytes: 0,
            garbage_bytes: 0,
            young_garbage_bytes: 0,
            highest_bytes: 0,
            cost_us: 20_000,
            refuses: false,
            granted: 0,
            spent_us: 0,
            has_spent: false,
        }
    }

    /// Runs the steps. An error tells the first one that differs.
    fn run(&mut self, steps: &[&str]) -> Result<(), String> {
        let mut rest = steps;
        while let [name, others @ ..] = rest {
            rest = if let Ok(times) = name.parse::<u64>() {
                let end = others.iter().position(|&word| word == "}").expect(name);
                (0..times).try_for_each(|_| self.run(&others[1..end]))?;
                &others[end + 1..]
            } else if ["collect", "fork", "refuse"].contains(name) {
                self.step(name, "")?;
                others
            } else {
                self.step(name, others[0])?;
                &others[1..]
            };
        }
        Ok(())
    }

    fn step(&mut self, name: &str, argument: &str) -> Result<(), String> {
        let number = || argument.parse::<f64>().expect(argument);
        let bytes = || number() as u64 * MB;
        let is_expected = match name {
            "yes" => self.ask(reason(argument)),
            "no" => !self.ask(reason(argument)),
            "unanswered" => self.request(reason(argument)),
            "withdraw" => {
                let is_granted = self.request(reason(argument));
                self.policy.withdraw(reason(argument).requester());
                is_granted
            }
            "granted" => is_in(argument, std::mem::take(&mut self.granted) as f64),
            "live" => is_in(argument, (self.live_bytes / MB) as f64),
            "highest" => is_in(argument, (self.highest_bytes / MB) as f64),
            "spent" => is_in(argument, self.spent_us as f64 / 1e6),
            "percent" => is_in(argument, self.spent_us as f64 / self.now_us as f64 * 100.0),
            _ => {
                match name {
                    "wait" => self.now_us += (number() * 1e6) as u64,
                    "cost" => self.cost_us = number() as u64 * 1000,
                    "hold" => self.live_bytes += bytes(),
                    "free" => self.live_bytes -= bytes(),
                    "drop" => self.garbage_bytes += bytes(),
                    "litter" => {
                        self.live_bytes += bytes();
                        self.garbage_bytes += bytes();
                    }
                    "young" => {
                        self.live_bytes += bytes();
                        self.young_garbage_bytes += bytes();
                    }
                    "collect" => {
                        self.collect(Depth::Full);
                    }
                    "fork" => self.policy.forget_growth(self.live_bytes),
                    "refuse" => self.refuses = true,
                    "ask" => {
                        self.ask(reason(argument));
                    }
                    "rest" => self.rest(number() as u64),
                    unknown => panic!("{unknown}"),
                }
                true
            }
        };
        self.highest_bytes = self.highest_bytes.max(self.live_bytes);
        is_expected.then_some(()).ok_or_else(|| {
            let (at_us, bytes) = (self.now_us, self.live_bytes);
            format!("{name} {argument} at {at_us} us with {bytes} bytes")
        })
    }

    fn request(&mut self, reason: Reason) -> bool {
        self.policy.request(reason, self.live_bytes, self.now_us)
    }

    fn ask(&mut self, reason: Reason) -> bool {
        if !self.request(reason) {
            return false;
        }
        self.granted += 1;
        if !self.refuses {
            let cost_us = self.collect(reason.depth());
            self.spent_us += if self.has_spent { cost_us } else { 0 };
            self.has_spent = true;
        }
        self.policy.finish(reason.requester());
        true
    }

    fn rest(&mut self, seconds: u64) {
        for second in 1..=seconds {
            self.now_us += 1_000_000;
            let idle_us = second * 1_000_000;
            self.ask(Reason::Resting { idle_us });
        }
    }

    fn collect(&mut self, depth: Depth) -> u64 {
        let live_before_bytes = self.live_bytes;
        self.live_bytes -= std::mem::take(&mut self.young_garbage_bytes);
        let cost_us = match depth {
            Depth::Young => self.cost_us / 100,
            Depth::Full => {
                self.live_bytes -= std::mem::take(&mut self.garbage_bytes);
                self.cost_us
            }
        };
        self.now_us += cost_us;
        let collection = Collection {
            depth,
            live_before_bytes,
            live_after_bytes: self.live_bytes,
            cost_us,
        };
        self.policy.observe(collection, self.now_us);
        cost_us
    }
}

fn reason(name: &str) -> Reason {
    match name {
        "stage" => Reason::Stage(Depth::Full),
        "stage-young" => Reason::Stage(Depth::Young),
        "before-wait" => Reason::BeforeWait,
        "working" => Reason::Working(Depth::Young),
        "working-full" => Reason::Working(Depth::Full),
        "idle" => Reason::Idle,
        "near-limit" => Reason::NearLimit,
        "resting" => Reason::Resting {
            idle_us: 10_000_000,
        },
        unknown => panic!("{unknown}"),
    }
}

fn is_in(range: &str, value: f64) -> bool {
    let (least, most) = range.split_once("..").expect(range);
    let bound = |text: &str| text.parse::<f64>().expect(text);
    (bound(least)..=bound(most)).contains(&value)
}

#[test]
fn each_situation_has_its_decisions() {
    let (mut sentence, mut wrong) = ("", Vec::new());
    let mut program = Program::new();
    for line in SITUATIONS.lines() {
        if !line.starts_with(' ') {
            (sentence, program) = (line, Program::new());
            continue;
        }
        let steps: Vec<&str> = line.split_whitespace().collect();
        if let Err(step) = program.run(&steps) {
            wrong.push(format!("{sentence}: {step}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
