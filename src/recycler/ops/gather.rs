//! Filling a range from cached pages elsewhere by moving page tables.

use crate::core::amount::Pages;
use crate::core::extent::Extent;
use crate::core::page_ledger::Column;
use crate::core::unit::FreeKind;
use crate::os::vm::{MoveOutcome, RemapOutcome, Vm};
use crate::state::recycler::{Locked, Recycler};
use crate::state::stats::Fallback;

/// Extents moved per hold of the lock. Moving a unit costs a hundredth of faulting its pages in, so the
/// number of holds is bounded only by the request.
const BATCH: usize = 32;
/// After this many lost targets the kernel is not asked to move any more.
const LOST_TARGETS: u32 = 16;

#[derive(Clone, Copy, Default)]
struct Piece {
    from: Extent,
    to: Extent,
    pages: Pages,
    /// Units whose pages arrived, counted from the start.
    moved: u32,
    tried: bool,
    by_unit: bool,
    /// Some units of the source are no longer ours, and marked `Gone`.
    source_gone: bool,
    target_lost: bool,
}

impl<M: Vm> Recycler<M> {
    /// Moves cached extents into `target` behind its first `filled` units, as long as there are any.
    /// None: part of the target was lost; the rest is free again.
    pub fn fill<'a>(
        &'a self,
        mut state: Locked<'a>,
        target: Extent,
        mut filled: u32,
        units: u32,
    ) -> Option<Locked<'a>> {
        let allowed = self.map.max_map_count();
        while filled < units
            && state.lost_targets < LOST_TARGETS
            && !state.has_too_many_vmas(allowed)
        {
            let mut pieces = [Piece::default(); BATCH];
            let mut count = 0;
            for piece in &mut pieces {
                if filled == units {
                    break;
                }
                let Some(from) = state.take_piece(units - filled) else {
                    break;
                };
                let pages = state.remove_from_column(from, Column::Moving);
                state.space.split_to_busy_units(from);
                let to = target.part(filled, from.len);
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
            // A move that fails may lose the target to somebody else.
            state.space.split_to_busy_units(target);
            drop(state);
            for piece in pieces.iter_mut() {
                self.move_piece(piece);
                if piece.target_lost {
                    break;
                }
            }
            state = self.lock();
            for piece in pieces.iter() {
                self.finish_piece(&mut state, piece);
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
        match self.move_extent(piece.from, piece.to) {
            MoveOutcome::Done => piece.moved = piece.from.len,
            MoveOutcome::DoneSourceGone => {
                piece.moved = piece.from.len;
                piece.source_gone = true;
                self.mark_gone(piece.from);
            }
            MoveOutcome::TargetLost => piece.target_lost = true,
            MoveOutcome::Refused if piece.from.len > 1 => self.move_by_unit(piece),
            MoveOutcome::Refused => {}
        }
        if piece.moved < piece.from.len && !piece.target_lost {
            // What stays behind is dropped: an empty unit at the target serves as well.
            let len = piece.from.len - piece.moved;
            let part = |of: Extent| of.part(piece.moved, len);
            if self.remap_if_altered(part(piece.to)) == RemapOutcome::Lost {
                piece.target_lost = true;
                return;
            }
            self.evict(part(piece.from));
        }
    }

    /// Kernels before 6.17 refuse ranges that cross mappings; a unit seldom does.
    fn move_by_unit(&self, piece: &mut Piece) {
        piece.by_unit = true;
        for index in 0..piece.from.len {
            let from = Extent::unit(piece.from.head + index);
            match self.move_extent(from, Extent::unit(piece.to.head + index)) {
                MoveOutcome::Done => piece.moved += 1,
                MoveOutcome::DoneSourceGone => {
                    piece.moved += 1;
                    piece.source_gone = true;
                    self.mark_gone(from);
                }
                MoveOutcome::Refused => return,
                MoveOutcome::TargetLost => {
                    piece.target_lost = true;
                    return;
                }
            }
        }
    }

    /// Books what `move_piece` did.
    fn finish_piece(&self, state: &mut Locked<'_>, piece: &Piece) {
        let moved = piece.from.prefix(piece.moved);
        let rest = piece.from.suffix_from(piece.moved);
        let moved_pages = state.space.populated(moved);
        let rest_pages = piece.pages - moved_pages;
        state.inherit(moved, piece.to.head);
        state.counters.moved += moved_pages;
        // A page that had to move was missing in one place and left over in another, as if it went and came back.
        state.space.record_churn(moved_pages, moved_pages);
        state.vma_count.record_move();
        if piece.by_unit {
            state.counters.count_fallback(Fallback::MovedByUnit);
        }
        if piece.source_gone {
            state.free_addresses(moved);
        } else {
            state.empty_out(moved);
        }
        if piece.target_lost || !piece.tried {
            state.record_cached(rest, rest_pages);
        } else if rest.len > 0 {
            state.counters.count_fallback(Fallback::MoveRefused);
            let ledger = &mut state.space.ledger;
            ledger.transfer(Column::Moving, Column::Purging, rest_pages);
            state.record_purged(rest_pages);
            state.free_addresses(rest);
        }
        if piece.target_lost {
            state.counters.count_fallback(Fallback::TargetLost);
            state.lost_targets += 1;
            state.space.forget(piece.to.part(moved.len, rest.len));
        }
    }
}

impl crate::state::recycler::State {
    /// A cached extent of at most `units`: a part of the best fit, else the largest there is.
    fn take_piece(&mut self, units: u32) -> Option<Extent> {
        if let Some(extent) = self.space.take_best_fit(units, FreeKind::Cached) {
            return Some(extent);
        }
        let whole = self.space.cached.largest(self.space.pagemap)?;
        Some(self.space.take_part(whole, whole, FreeKind::Cached))
    }
}
