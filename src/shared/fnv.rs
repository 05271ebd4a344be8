//! FNV-1a, a hash that is the same in every build. It has no cryptographic strength.

/// The hash of no bytes.
pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of the bytes that `hash` stands for, followed by `bytes`.
pub fn append(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The hash in 32 bits.
pub fn short(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}
