//! Gathers cached pages: moves them, by their page tables, from smaller extents into a target.
//!
//! Invariant: source and target are `Busy`, and each unit is recorded on its own, while their pages
//! move. Changes the state only under the lock.

use crate::core::geometry::Pages;
use crate::core::page_ledger::Column;
use crate::core::unit::{Extent, FreeKind};
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler, State};
use crate::state::stats::Fallback;

/// Extents that are taken under one acquisition of the lock.
const BATCH: usize = 32;
/// After this many lost targets the recycler stops moving pages.
const MAX_LOST_TARGETS: u32 = 16;

/// A cached extent and the part of the target that its pages move to.
#[derive(Clone, Copy, Default)]
struct Piece {
    from: Extent,
    to: Extent,
    pages: Pages,
    outcome: PieceOutcome,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum PieceOutcome {
    /// The move was not attempted, because an earlier piece lost the target.
    #[default]
    Skipped,
    /// The pages of the first units are at the target. Those of the other units were dropped.
    Done { moved_units: u32 },
    /// The pages of the first units are at the target. Another thread may have mapped units of the
    /// target, which are `Gone`.
    TargetLost { moved_units: u32 },
}

impl<V: Vm> Recycler<V> {
    /// Moves cached extents into `target`, behind its first `filled` units, until it is full or no
    /// cached extent is left. None: a part of the target was lost; the rest of it is free again.
    pub fn fill<'a>(
        &'a self,
        mut state: Locked<'a>,
        target: Extent,
        filled: u32,
    ) -> Option<Locked<'a>> {
        let max_vmas = self.vm.max_map_count();
        let mut room = target.suffix_from(filled);
        while room.len > 0
            && state.lost_targets < MAX_LOST_TARGETS
            && !state.has_too_many_vmas(max_vmas)
        {
            let mut pieces = [Piece::default(); BATCH];
            let count = state.take_pieces(&mut room, &mut pieces);
            let pieces = pieces.get_mut(..count).unwrap_or(&mut []);
            if pieces.is_empty() {
                break;
            }
            // A failed move may lose single units of the target.
            state.space.split_to_busy_units(target);
            drop(state);
            let is_lost = self.move_pieces(pieces);
            state = self.lock();
            for piece in &*pieces {
                state.finish_piece(piece);
            }
            if is_lost {
                self.abandon_target(&mut state, target);
                return None;
            }
        }
        Some(state)
    }

    /// True: the target was lost, and the remaining pieces are `Skipped`.
    fn move_pieces(&self, pieces: &mut [Piece]) -> bool {
        pieces.iter_mut().any(|piece| {
            piece.outcome = self.move_piece(piece.from, piece.to);
            matches!(piece.outcome, PieceOutcome::TargetLost { .. })
        })
    }

    fn move_piece(&self, from: Extent, to: Extent) -> PieceOutcome {
        let outcome = match self.move_extent(from, to) {
            MoveOutcome::Done | MoveOutcome::DoneSourceGone => PieceOutcome::Done {
                moved_units: from.len,
            },
            MoveOutcome::TargetLost => PieceOutcome::TargetLost { moved_units: 0 },
            MoveOutcome::Refused if from.len > 1 => self.move_by_unit(from, to),
            MoveOutcome::Refused => PieceOutcome::Done { moved_units: 0 },
        };
        let PieceOutcome::Done { moved_units } = outcome else {
            return outcome;
        };
        if moved_units < from.len {
            // Units of the target may stay empty: the program then faults in fresh pages there. The
            // source's pages are dropped, so that the footprint does not grow.
            let unmoved = to.suffix_from(moved_units);
            if self.remap_if_altered(unmoved) == RemapOutcome::Lost {
                self.mark_gone(unmoved);
                return PieceOutcome::TargetLost { moved_units };
            }
            self.drop_pages(from.suffix_from(moved_units));
        }
        outcome
    }

    /// Kernels before 6.17 refuse a range that crosses VMAs. A single unit rarely crosses one.
    #[cold]
    fn move_by_unit(&self, from: Extent, to: Extent) -> PieceOutcome {
        self.count_fallback(Fallback::MovedByUnit);
        let mut moved_units = 0;
        for (source, target) in from.extents().zip(to.extents()) {
            match self.move_extent(source, target) {
                MoveOutcome::Done | MoveOutcome::DoneSourceGone => {}
                MoveOutcome::Refused => break,
                MoveOutcome::TargetLost => return PieceOutcome::TargetLost { moved_units },
            }
            moved_units += 1;
        }
        PieceOutcome::Done { moved_units }
    }
}

impl State {
    /// Takes cached extents that fill `room` from its start, and leaves the rest in `room`. Returns
    /// the number of pieces.
    fn take_pieces(&mut self, room: &mut Extent, pieces: &mut [Piece]) -> usize {
        let mut count = 0;
        for piece in pieces {
            if room.len == 0 {
                break;
            }
            let Some(from) = self.take_cached(room.len) else {
                break;
            };
            let pages = self.remove_from_column(from, Column::Moving);
            self.space.split_to_busy_units(from);
            *piece = Piece {
                from,
                to: room.prefix(from.len),
                pages,
                outcome: PieceOutcome::Skipped,
            };
            *room = room.suffix_from(from.len);
            count += 1;
        }
        count
    }

    /// A cached extent of at most `units`: a part of the best fit, or else the largest extent.
    fn take_cached(&mut self, units: u32) -> Option<Extent> {
        if let Some(extent) = self.space.take_best_fit(units, FreeKind::Cached) {
            return Some(extent);
        }
        let whole = self.space.cached.largest(self.space.pagemap)?;
        Some(self.space.take_part(whole, whole, FreeKind::Cached))
    }

    /// Records the result of moving a piece.
    fn finish_piece(&mut self, piece: &Piece) {
        let moved_units = match piece.outcome {
            PieceOutcome::Skipped => 0,
            PieceOutcome::Done { moved_units } | PieceOutcome::TargetLost { moved_units } => {
                moved_units
            }
        };
        let moved = piece.from.prefix(moved_units);
        let rest = piece.from.suffix_from(moved_units);
        let moved_pages = self.space.populated(moved);
        let rest_pages = piece.pages - moved_pages;
        self.transfer_units(moved, piece.to.head);
        self.space.ledger.totals.moved += moved_pages;
        // A page that had to move counts as purged and faulted in again.
        self.space.record_churn(moved_pages, moved_pages);
        self.vma_count.record_splits();
        self.free_addresses(moved);
        match piece.outcome {
            PieceOutcome::Skipped => self.insert_cached(rest, rest_pages),
            PieceOutcome::Done { .. } if rest.len > 0 => {
                self.counters.count_fallback(Fallback::MoveRefused);
                let ledger = &mut self.space.ledger;
                ledger.transfer(Column::Moving, Column::Purging, rest_pages);
                self.record_purged(rest_pages);
                self.free_addresses(rest);
            }
            PieceOutcome::Done { .. } => {}
            PieceOutcome::TargetLost { .. } => {
                self.insert_cached(rest, rest_pages);
                self.counters.count_fallback(Fallback::TargetLost);
                self.lost_targets += 1;
            }
        }
    }
}
