//! Debug builds: the ledger against a walk of the table.

use super::amount::Pages;
use super::space::{Run, Space};
use super::unit::kind;

impl Space {
    /// Panics when the table tells of other pages than the ledger. Moving pages are in no span that could
    /// be told from another thread's; the rest is exact whenever the lock is free.
    pub fn check_ledger(&self) {
        let (mut blocks, mut live, mut slack, mut cached) =
            (0, Pages::NONE, Pages::NONE, Pages::NONE);
        self.table.walk(|head, unit| {
            let run = Run {
                head,
                len: unit.len(),
            };
            match unit.kind() {
                kind::LIVE => {
                    blocks += 1;
                    live += unit.pages();
                    slack += self.slack_of(run, self.need_of(run));
                }
                kind::CACHED => cached += self.populated(run),
                kind::EMPTY => assert_eq!(self.populated(run), Pages::NONE, "empty: {run:?}"),
                kind::HOLE | kind::BUSY => {}
                _ => return 1,
            }
            run.len
        });
        let ledger = &self.ledger;
        assert_eq!(
            (blocks, live, slack, cached),
            (
                ledger.live_blocks(),
                ledger.live(),
                ledger.slack(),
                ledger.cached()
            ),
            "blocks, live, slack and cached pages: the table, then {ledger:?}"
        );
    }
}
