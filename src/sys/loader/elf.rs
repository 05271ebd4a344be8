//! The dynamic symbols of a loaded ELF object, as the dynamic loader sees them.

use std::ffi::{c_char, c_void, CStr};
use std::ptr;

/// What is needed of a loaded ELF object.
pub struct Image {
    base: u64,
    symbols: *mut libc::Elf64_Sym,
    strings: *const c_char,
    /// DT_GNU_HASH: bloom filter, buckets, chains.
    hash: *const u32,
    /// DT_VERSYM: a word for each symbol; null in an object without versions.
    versions: *const u16,
    /// DT_SONAME, as an offset into the strings; 0 where it has none.
    name: u64,
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// In a word of DT_VERSYM: kept for programs that were linked long ago; who asks by name gets another.
const OUTDATED: u16 = 0x8000;
const STT_TLS: u8 = 6;
const STT_GNU_IFUNC: u8 = 10;
/// A number, and not relative to where the object lies.
const SHN_ABS: u16 = 0xfff1;

#[repr(C)]
struct Dyn {
    tag: i64,
    value: u64,
}

impl Image {
    /// # Safety
    /// `dynamic` is the dynamic section of a loaded object, terminated by DT_NULL.
    pub unsafe fn from_dynamic(dynamic: u64, base: u64) -> Option<Image> {
        let (mut tables, mut versions, mut name) = ([0u64; 3], 0, 0);
        let mut entry = dynamic as *const Dyn;
        // SAFETY: the section ends with DT_NULL, whose tag is 0.
        while unsafe { (*entry).tag } != 0 {
            // SAFETY: not yet at the end.
            let Dyn { tag, value } = unsafe { &*entry };
            // The loader has relocated these addresses on all our platforms but may not on others.
            let address = if *value < base { *value + base } else { *value };
            match *tag {
                DT_SYMTAB => tables[0] = address,
                DT_STRTAB => tables[1] = address,
                DT_GNU_HASH => tables[2] = address,
                DT_VERSYM => versions = address,
                DT_SONAME => name = *value,
                _ => {}
            }
            // SAFETY: the tag was not DT_NULL, so an entry follows.
            entry = unsafe { entry.add(1) };
        }
        if tables.contains(&0) {
            return None;
        }
        Some(Image {
            base,
            versions: versions as *const u16,
            name,
            symbols: tables[0] as *mut libc::Elf64_Sym,
            strings: tables[1] as *const c_char,
            hash: tables[2] as *const u32,
        })
    }

    fn count(&self) -> usize {
        // SAFETY: DT_GNU_HASH points to the object's hash table.
        unsafe { gnu_hash_symbol_count(self.hash) }
    }

    /// True where others know the object by this name.
    pub fn is_called(&self, name: &CStr) -> bool {
        // SAFETY: DT_SONAME is an offset into the string table.
        self.name != 0 && unsafe { CStr::from_ptr(self.strings.add(self.name as usize)) } == name
    }

    /// True where the object itself defines this name for others.
    pub fn defines(&self, name: &CStr) -> bool {
        self.definition(name).is_some()
    }

    /// Where the function or the variable lies that the object defines under this name, as `dlsym` would find it in this
    /// object alone; null where there is none, and where it takes the loader to say (thread-local, or an IFUNC).
    pub fn address_of(&self, name: &CStr) -> *const c_void {
        let fixed = |symbol: &&libc::Elf64_Sym| {
            let kind = symbol.st_info & 0xf;
            // A value of 0 is a name that was hidden.
            symbol.st_value != 0
                && symbol.st_shndx != SHN_ABS
                && !matches!(kind, STT_TLS | STT_GNU_IFUNC)
        };
        let found = self.definition(name).filter(fixed);
        found.map_or(ptr::null(), |symbol| {
            self.base.wrapping_add(symbol.st_value) as *const c_void
        })
    }

    fn definition(&self, name: &CStr) -> Option<&libc::Elf64_Sym> {
        let hash = gnu_hash(name.to_bytes());
        // SAFETY: the header has four words; buckets follow the bloom filter of 64-bit words, chains follow the
        // buckets, and the last word of each chain has its lowest bit set. Symbols below the first are not hashed.
        unsafe {
            let (buckets, first) = (*self.hash, *self.hash.add(1) as usize);
            if buckets == 0 {
                return None;
            }
            let bucket = self.hash.add(4 + 2 * *self.hash.add(2) as usize);
            let chain = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize) as usize;
            while index >= first {
                let symbol = &*self.symbols.add(index);
                let found = *chain.add(index - first);
                if found | 1 == hash | 1
                    && symbol.st_shndx != 0
                    && self.is_current(index)
                    && CStr::from_ptr(self.strings.add(symbol.st_name as usize)) == name
                {
                    return Some(symbol);
                }
                if found & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
        None
    }

    fn is_current(&self, index: usize) -> bool {
        // SAFETY: where there is a table of versions it has a word for each symbol.
        self.versions.is_null() || unsafe { *self.versions.add(index) } & OUTDATED == 0
    }

    /// True for a stub: a symbol that this object, which lies at its linked address, gives a value
    /// but does not define.
    pub fn has_stub_at(&self, address: u64) -> bool {
        (1..self.count()).any(|index| {
            // SAFETY: index is below the number of symbols of the table.
            let symbol = unsafe { &*self.symbols.add(index) };
            symbol.st_value == address && symbol.st_shndx == 0
        })
    }

    /// Makes the named symbols undefined; false when the table cannot be written.
    pub fn hide(&self, names: &[&CStr]) -> bool {
        let (page, start) = (crate::proc::procfs::page_bytes(), self.symbols as usize);
        let end = start + self.count() * size_of::<libc::Elf64_Sym>();
        let first = start & !(page - 1);
        let protect = |protection| {
            // SAFETY: these pages hold read-only tables of this library, which was linked with
            // separate-code: no code of ours lies in them.
            unsafe { libc::mprotect(first as *mut c_void, end - first, protection) == 0 }
        };
        if !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        for index in 1..self.count() {
            // SAFETY: index is below the number of symbols of the table, now writable; st_name
            // is an offset into the string table. The loader reads the value in one load.
            unsafe {
                let symbol = self.symbols.add(index);
                if names.contains(&CStr::from_ptr(
                    self.strings.add((*symbol).st_name as usize),
                )) {
                    // glibc takes a value of 0 for "undefined".
                    (&raw mut (*symbol).st_value).write_volatile(0);
                }
            }
        }
        protect(libc::PROT_READ)
    }
}

fn gnu_hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.iter().fold(5381, step)
}

/// The number of dynamic symbols, which ELF does not state: one past the end of the last chain.
///
/// # Safety
/// `table` is a well-formed DT_GNU_HASH table.
unsafe fn gnu_hash_symbol_count(table: *const u32) -> usize {
    // SAFETY: the header has four words; buckets follow the bloom filter of 64-bit words, chains
    // follow the buckets, and the last word of each chain has its lowest bit set.
    unsafe {
        let (buckets, first) = (*table as usize, *table.add(1) as usize);
        let bucket = table.add(4 + 2 * *table.add(2) as usize);
        let chain = bucket.add(buckets);
        let last = (0..buckets)
            .map(|i| *bucket.add(i) as usize)
            .max()
            .unwrap_or(0);
        if last < first {
            return first;
        }
        let mut index = last;
        while *chain.add(index - first) & 1 == 0 {
            index += 1;
        }
        index + 1
    }
}
