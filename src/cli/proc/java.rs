//! The Java heap of a process, from the counters that HotSpot keeps in a mapped file (`hsperfdata`).

/// Sizes of the heap in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JavaHeap {
    pub used: u64,
    /// Memory that the JVM has reserved for the heap and may touch.
    pub committed: u64,
}

/// Big-endian in every file.
const MAGIC: u32 = 0xcafe_c0c0;
const LITTLE_ENDIAN: u8 = 1;
/// A number of 64 bits.
const LONG: u8 = b'J';

impl JavaHeap {
    /// `None` if these are not the counters of a HotSpot JVM, or none of them is about the heap.
    pub fn parse(file: &[u8]) -> Option<JavaHeap> {
        if u32::from_be_bytes(bytes(file, 0)?) != MAGIC || *file.get(4)? != LITTLE_ENDIAN {
            return None;
        }
        let number = |at: usize| Some(u32::from_le_bytes(bytes(file, at)?) as usize);
        let (mut entry, count) = (number(24)?, number(28)?);
        let mut heap = None;
        for _ in 0..count {
            let length = number(entry)?.max(1);
            let name = file.get(entry + number(entry + 4)?..)?;
            let name = name.split(|byte| *byte == 0).next()?;
            if *file.get(entry + 12)? == LONG {
                let value = u64::from_le_bytes(bytes(file, entry + number(entry + 16)?)?);
                if let Some(size) = size_named(name, heap.get_or_insert_default()) {
                    *size += value;
                }
            }
            entry += length;
        }
        heap.filter(|heap| heap.committed > 0)
    }
}

/// The size that a counter adds to, such as `sun.gc.generation.1.space.0.used`.
fn size_named<'a>(name: &[u8], heap: &'a mut JavaHeap) -> Option<&'a mut u64> {
    let name = std::str::from_utf8(name).ok()?;
    let parts: Vec<&str> = name
        .strip_prefix("sun.gc.generation.")?
        .split('.')
        .collect();
    match parts[..] {
        [_, "capacity"] => Some(&mut heap.committed),
        [_, "space", _, "used"] => Some(&mut heap.used),
        _ => None,
    }
}

fn bytes<const N: usize>(file: &[u8], at: usize) -> Option<[u8; N]> {
    file.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with these counters.
    fn counters(all: &[(&str, u64)]) -> Vec<u8> {
        const HEADER: usize = 20;
        let mut file = MAGIC.to_be_bytes().to_vec();
        file.extend([LITTLE_ENDIAN, 2, 0, 1]);
        file.extend([0; 16]);
        file.extend(32_u32.to_le_bytes());
        file.extend((all.len() as u32).to_le_bytes());
        for (name, value) in all {
            let room = name.len().next_multiple_of(8) + 8;
            let data = HEADER + room;
            file.extend(((data + 8) as u32).to_le_bytes());
            file.extend((HEADER as u32).to_le_bytes());
            file.extend(0_u32.to_le_bytes());
            file.extend([LONG, 0, 2, 1]);
            file.extend((data as u32).to_le_bytes());
            file.extend(name.bytes().chain(std::iter::repeat(0)).take(room));
            file.extend(value.to_le_bytes());
        }
        file
    }

    #[test]
    fn generations_and_spaces_are_summed() {
        let file = counters(&[
            ("sun.gc.generation.0.maxCapacity", 1000),
            ("sun.gc.generation.0.capacity", 100),
            ("sun.gc.generation.0.space.0.used", 30),
            ("sun.gc.generation.0.space.1.used", 5),
            ("sun.gc.generation.1.capacity", 200),
            ("sun.gc.generation.1.space.0.used", 50),
            ("sun.gc.metaspace.capacity", 7),
        ]);
        let heap = JavaHeap {
            used: 85,
            committed: 300,
        };
        assert_eq!(JavaHeap::parse(&file), Some(heap));
    }

    #[test]
    fn damaged_counters_give_none_or_a_size_and_never_panic() {
        let file = counters(&[("sun.gc.generation.0.capacity", 100)]);
        for length in 0..file.len() {
            assert_eq!(JavaHeap::parse(&file[..length]), None, "{length}");
        }
        for at in 0..file.len() {
            let mut odd = file.clone();
            odd[at] ^= 0xff;
            let _ = JavaHeap::parse(&odd);
        }
    }
}
