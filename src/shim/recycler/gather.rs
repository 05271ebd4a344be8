//! Filling a range from cached pages elsewhere by moving page tables.

use super::amount::Pages;
use super::engine::{Locked, Recycler};
use super::ledger::Column;
use super::map::{Map, Shift};
use super::space::Run;
use super::stats::Fallback;
use super::unit::{address, flag, kind, UNIT_BYTES};

/// Runs moved per hold of the lock. Moving a unit costs a hundredth of faulting its pages in, so the
/// number of holds is bounded only by the request.
const BATCH: usize = 32;
/// After this many lost targets the kernel is not asked to move any more.
const LOST_TARGETS: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Piece {
    from: Run,
    to: Run,
    pages: Pages,
    /// Units whose pages arrived, counted from the start.
    moved: u32,
    tried: bool,
    by_unit: bool,
    /// Some units of the source are no longer ours, and marked `GONE`.
    source_gone: bool,
    target_lost: bool,
}

impl<M: Map> Recycler<M> {
    /// Moves cached runs into `target` behind its first `filled` units, as long as there are any.
    /// None: part of the target was lost; the rest is free again.
    pub fn fill<'a>(
        &'a self,
        mut state: Locked<'a>,
        target: Run,
        mut filled: u32,
        units: u32,
    ) -> Option<Locked<'a>> {
        while filled < units && state.lost_targets < LOST_TARGETS {
            let mut pieces = [Piece::default(); BATCH];
            let mut count = 0;
            for piece in &mut pieces {
                if filled == units {
                    break;
                }
                let Some(from) = state.take_piece(units - filled) else {
                    break;
                };
                let pages = state.take_off(from);
                state.space.mark_busy(from);
                let to = Run {
                    head: target.head + filled,
                    len: from.len,
                };
                *piece = Piece {
                    from,
                    to,
                    pages,
                    ..Piece::default()
                };
                filled += from.len;
                count += 1;
            }
            let pieces = pieces.get_mut(..count).unwrap_or(&mut []);
            if pieces.is_empty() {
                break;
            }
            state.in_flight += 1;
            drop(state);
            for piece in pieces.iter_mut() {
                self.move_piece(piece);
                if piece.target_lost {
                    break;
                }
            }
            state = self.lock();
            state.in_flight -= 1;
            for piece in pieces.iter() {
                self.settle_piece(&mut state, piece);
            }
            if pieces.iter().any(|piece| piece.target_lost) {
                self.abandon(&mut state, target);
                return None;
            }
        }
        Some(state)
    }

    fn move_piece(&self, piece: &mut Piece) {
        piece.tried = true;
        match self.shift(piece.from, piece.to) {
            Shift::Done => piece.moved = piece.from.len,
            Shift::DoneSourceGone => {
                piece.moved = piece.from.len;
                piece.source_gone = true;
                self.mark_gone(piece.from);
            }
            Shift::TargetLost => piece.target_lost = true,
            Shift::Refused if piece.from.len > 1 => self.move_by_unit(piece),
            Shift::Refused => {}
        }
        if piece.moved < piece.from.len && !piece.target_lost {
            // What stays behind is dropped: an empty unit at the target serves as well.
            let head = piece.from.head + piece.moved;
            self.evict(Run {
                head,
                len: piece.from.len - piece.moved,
            });
        }
    }

    /// Kernels before 6.17 refuse ranges that span mappings; a unit seldom does.
    fn move_by_unit(&self, piece: &mut Piece) {
        piece.by_unit = true;
        for index in 0..piece.from.len {
            let from = Run {
                head: piece.from.head + index,
                len: 1,
            };
            match self.shift(
                from,
                Run {
                    head: piece.to.head + index,
                    len: 1,
                },
            ) {
                Shift::Done => piece.moved += 1,
                Shift::DoneSourceGone => {
                    piece.moved += 1;
                    piece.source_gone = true;
                    self.mark_gone(from);
                }
                Shift::Refused => return,
                Shift::TargetLost => {
                    piece.target_lost = true;
                    return;
                }
            }
        }
    }

    pub fn shift(&self, from: Run, to: Run) -> Shift {
        let bytes = from.len as usize * UNIT_BYTES;
        self.map.shift(address(from.head), address(to.head), bytes)
    }

    /// Books what `move_piece` did.
    fn settle_piece(&self, state: &mut Locked<'_>, piece: &Piece) {
        let moved = Run {
            head: piece.from.head,
            len: piece.moved,
        };
        let rest = Run {
            head: moved.end(),
            len: piece.from.len - piece.moved,
        };
        let moved_pages = state.space.populated(moved);
        let rest_pages = piece.pages - moved_pages;
        state.inherit(moved, piece.to.head);
        state.tally.moved += moved_pages;
        if piece.by_unit {
            state.tally.fell_back(Fallback::MovedByUnit);
        }
        if piece.source_gone {
            state.bury(moved);
        } else {
            state.empty_out(moved);
        }
        if piece.target_lost || !piece.tried {
            state.book_cached(rest, rest_pages);
        } else if rest.len > 0 {
            state.tally.fell_back(Fallback::MoveRefused);
            state.book_returned(rest_pages);
            state.bury(rest);
        }
        if piece.target_lost {
            state.tally.fell_back(Fallback::TargetLost);
            state.lost_targets += 1;
            state.space.disown(Run {
                head: piece.to.head + moved.len,
                len: rest.len,
            });
        }
    }

    /// Frees what was gathered so far.
    pub fn abandon(&self, state: &mut Locked<'_>, target: Run) {
        state.space.mark_busy(target);
        for id in target.units() {
            if self.table.unit(id).kind() == kind::GONE {
                state.space.disown(Run { head: id, len: 1 });
            }
        }
        let ours = |id: &u32| self.table.unit(*id).kind() == kind::BUSY;
        for id in target.units().filter(ours) {
            let run = Run { head: id, len: 1 };
            match state.space.populated(run) {
                Pages::NONE => state.space.give(run, kind::EMPTY),
                pages => state.book_cached(run, pages),
            }
        }
    }
}

impl super::engine::State {
    /// A cached run of at most `units`: a part of the best fit, else the largest there is.
    fn take_piece(&mut self, units: u32) -> Option<Run> {
        if let Some(run) = self.space.take_fit(units, kind::CACHED) {
            return Some(run);
        }
        let (head, len) = self.space.cached.largest(self.space.table)?;
        let whole = Run { head, len };
        Some(self.space.carve(whole, whole, kind::CACHED))
    }

    /// Units at `to` take over the pages and flags of those of `from`.
    pub fn inherit(&mut self, from: Run, to: u32) {
        for (source, target) in from.units().zip(to..) {
            let (source, target) = (self.space.unit(source), self.space.unit(target));
            target.set_populated(source.populated());
            target.set_flags(source.flags() & !(flag::PINNED | flag::FREED));
        }
        if from.len > 0 {
            self.space.unit(to).raise(flag::SEAM);
            if let Some(behind) = self.space.table.find(to + from.len) {
                behind.raise(flag::SEAM);
            }
        }
    }

    /// Puts a run whose pages were moving into the cache.
    pub fn book_cached(&mut self, run: Run, pages: Pages) {
        self.space
            .ledger
            .transfer(Column::Moving, Column::Cached, pages);
        self.space.give(run, kind::CACHED);
    }

    /// Puts a run whose pages are gone into the pool of empty ones.
    pub fn empty_out(&mut self, run: Run) {
        if run.len == 0 {
            return;
        }
        for id in run.units() {
            self.space.unit(id).set_populated(Pages::NONE);
        }
        self.space.give(run, kind::EMPTY);
    }
}
