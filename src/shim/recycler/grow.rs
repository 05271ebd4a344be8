//! Growing a block over its free neighbours, on the books.

use super::engine::State;
use super::geometry::Need;
use super::ledger::Column;
use super::space::Extent;
use super::unit::Free;

/// Free neighbours taken to grow in place.
const NEIGHBOURS: usize = 16;

impl State {
    /// Free neighbours make the extent long enough.
    pub fn has_room(&self, extent: Extent, need: Need) -> bool {
        let mut end = extent.end();
        for _ in 0..NEIGHBOURS {
            let Some(next) = self.free_extent_at(end) else {
                return false;
            };
            end = next.0.end();
            if end - extent.head >= need.units {
                return true;
            }
        }
        false
    }

    fn free_extent_at(&self, head: u32) -> Option<(Extent, Free)> {
        let at = |free: Free| {
            let extent = self.space.extent_at(head, free.kind())?;
            let usable = free == Free::Cached || !self.space.is_altered(extent);
            usable.then_some((extent, free))
        };
        at(Free::Cached).or_else(|| at(Free::Empty))
    }

    /// Enlarges the block over its free neighbours. Answers the taken extents without pages.
    pub fn grow_in_place(&mut self, extent: Extent, need: Need) -> [Extent; NEIGHBOURS] {
        let mut fresh = [Extent::default(); NEIGHBOURS];
        let born_ms = self.space.unit(extent.head).stamp();
        let own = self.space.vacate(extent, Column::Moving);
        let mut pages = own;
        let mut len = extent.len;
        for slot in &mut fresh {
            if len >= need.units {
                break;
            }
            let Some((next, free)) = self.free_extent_at(extent.head + len) else {
                break;
            };
            let part = Extent {
                head: next.head,
                len: next.len.min(need.units - len),
            };
            self.space.carve(next, part, free);
            if free == Free::Cached {
                pages += self.take_off(part, Column::Moving);
            } else {
                *slot = part;
            }
            len += part.len;
        }
        let head = extent.head;
        let grown = Extent { head, len };
        let got = self.space.occupy_again(grown, need, born_ms);
        debug_assert_eq!(got.recycled_pages, pages);
        self.book_served(got, own);
        fresh
    }
}
