//! Numbers that several modules of the shim agree on.

/// malloc's promise of alignment on every platform that we run on.
pub const MIN_ALIGN: usize = 16;

/// A freed pointer with this alignment takes the cold path. Every large block has it, NULL has it,
/// and one small block in some thousands: those serve as a sample of what the program frees.
pub const SAMPLE_ALIGN: usize = 64 << 10;

/// Requests of this size and above leave the hot path, perhaps for the recycler: the least that
/// `FLARENA_RECYCLE_MIN` may be.
pub const COLD_MIN_BYTES: usize = flarena_shared::defaults::RECYCLE_MIN_BYTES_LOWEST as usize;
