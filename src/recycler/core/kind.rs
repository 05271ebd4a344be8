//! What an extent is, and facts about its units: the types, beside `unit`'s book-keeping.

/// What an extent is. Units outside every extent are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    None,
    /// Handed out to the program.
    Live,
    /// Free, with pages.
    Cached,
    /// Free, mapped, without pages.
    Empty,
    /// Unmapped by us: addresses to be tried first for the next mapping.
    Hole,
    /// In the hands of one thread that is inside a system call.
    Busy,
    /// The system will neither unmap nor empty it (sealed by the program): nobody's for ever.
    Stuck,
    /// Not ours, or not for long, as one thread knows and has yet to book.
    Gone,
    /// In the hands of a thread that unmaps it, and still mapped.
    Purging,
}

impl Kind {
    pub fn from_byte(byte: u8) -> Kind {
        match byte {
            0 => Kind::None,
            1 => Kind::Live,
            2 => Kind::Cached,
            3 => Kind::Empty,
            4 => Kind::Hole,
            5 => Kind::Busy,
            6 => Kind::Stuck,
            7 => Kind::Gone,
            _ => Kind::Purging,
        }
    }
}

/// The kinds that are free, with a pool each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeKind {
    Cached,
    Empty,
    Hole,
}

impl FreeKind {
    pub fn kind(self) -> Kind {
        match self {
            FreeKind::Cached => Kind::Cached,
            FreeKind::Empty => Kind::Empty,
            FreeKind::Hole => Kind::Hole,
        }
    }
}

/// A processor, for the pages that its own caches may hold: those whose numbers differ by 64 are taken for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu(u8);

impl Cpu {
    pub const fn new(number: u32) -> Cpu {
        Cpu((number % 64) as u8)
    }

    /// Six bits.
    pub const fn byte(self) -> u8 {
        self.0
    }
}

/// Facts about one unit, beside the kind of its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    /// Huge pages were asked for.
    pub const HUGE: Flags = Flags(1);
    /// A mapping may end between the unit before and this one.
    pub const VMA_BOUNDARY: Flags = Flags(2);
    /// Head of a live extent: a thread is giving its slack back outside the lock.
    pub const PINNED: Flags = Flags(4);
    /// Head of a live extent: freed while pinned.
    pub const FREED: Flags = Flags(8);
    /// The mapping's attributes may differ from those of a fresh one: map anew before pages fault in.
    pub const ALTERED: Flags = Flags(16);

    /// Head of a live extent: it was longer once, and marks may lie behind its last page.
    pub const SHRUNK: Flags = Flags(32);
    /// Mapped apart from the unit before: the kernel may have joined the two mappings, or not.
    pub const MAYBE_BOUNDARY: Flags = Flags(64);
    pub const ANY_BOUNDARY: Flags = Flags::VMA_BOUNDARY.with(Flags::MAYBE_BOUNDARY);

    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}
