//! Reads the dynamic symbols of a loaded ELF object, as the dynamic loader does, and can change some of them.
//! The tables are those in memory, and are valid while the object is loaded. Only `hide` and `redirect` write to them.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;

/// The tables of a loaded ELF object that symbol lookups need.
pub struct Image {
    base: u64,
    symbols: *mut libc::Elf64_Sym,
    strings: *const c_char,
    /// DT_GNU_HASH: bloom filter, buckets, chains.
    hash: *const u32,
    /// DT_VERSYM: one word per symbol; null in an object without versions.
    versions: *const u16,
    /// DT_SONAME, as an offset into the strings; 0 without one.
    name: u64,
    /// DT_JMPREL: one entry for each function that the object calls and does not define.
    calls: *const libc::Elf64_Rela,
    call_count: usize,
    /// PROT_* of the segment that contains the symbols.
    protection: c_int,
}

const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// In a word of DT_VERSYM: an old version, kept for existing programs. A lookup by name does not return it.
const OUTDATED: u16 = 0x8000;
const STT_TLS: u8 = 6;
const STT_GNU_IFUNC: u8 = 10;
/// The value is absolute, not relative to the base address.
const SHN_ABS: u16 = 0xfff1;

#[repr(C)]
struct Dyn {
    tag: i64,
    value: u64,
}

impl Image {
    /// Returns `None` if a required table is missing.
    ///
    /// # Safety
    /// `dynamic` is the dynamic section of a loaded object, terminated by DT_NULL.
    pub unsafe fn from_dynamic(dynamic: u64, base: u64) -> Option<Image> {
        let (mut tables, mut versions, mut name) = ([0u64; 3], 0, 0);
        let (mut calls, mut calls_bytes) = (0, 0);
        let mut entry = dynamic as *const Dyn;
        // SAFETY: the section ends with DT_NULL, whose tag is 0.
        while unsafe { (*entry).tag } != 0 {
            // SAFETY: `entry` is at or before DT_NULL, so it points to an initialized entry.
            let Dyn { tag, value } = unsafe { &*entry };
            // The loader has relocated these addresses on all supported platforms. On others it may not.
            let address = if *value < base { *value + base } else { *value };
            match *tag {
                DT_SYMTAB => tables[0] = address,
                DT_STRTAB => tables[1] = address,
                DT_GNU_HASH => tables[2] = address,
                DT_VERSYM => versions = address,
                DT_SONAME => name = *value,
                DT_JMPREL => calls = address,
                DT_PLTRELSZ => calls_bytes = *value as usize,
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
            calls: calls as *const libc::Elf64_Rela,
            call_count: calls_bytes / size_of::<libc::Elf64_Rela>(),
            protection: libc::PROT_READ,
        })
    }

    /// Reads from the object's program headers how its symbols are mapped.
    pub fn with_headers(mut self, headers: &[libc::Elf64_Phdr]) -> Image {
        let address = (self.symbols as u64).wrapping_sub(self.base);
        let holds = |h: &&libc::Elf64_Phdr| {
            h.p_type == libc::PT_LOAD && (h.p_vaddr..h.p_vaddr + h.p_memsz).contains(&address)
        };
        if headers
            .iter()
            .find(holds)
            .is_some_and(|h| h.p_flags & libc::PF_X != 0)
        {
            self.protection |= libc::PROT_EXEC;
        }
        self
    }

    fn count(&self) -> usize {
        // SAFETY: DT_GNU_HASH points to the object's hash table, which the linker made well-formed.
        unsafe { gnu_hash_symbol_count(self.hash) }
    }

    /// True if this is the object's DT_SONAME.
    pub fn is_called(&self, name: &CStr) -> bool {
        // SAFETY: DT_SONAME is the offset of a NUL-terminated string in the string table.
        self.name != 0 && unsafe { CStr::from_ptr(self.strings.add(self.name as usize)) } == name
    }

    /// True if the object exports a definition of this name.
    pub fn defines(&self, name: &CStr) -> bool {
        self.definition(name).is_some()
    }

    /// The address of the function or variable that this object defines under this name, as `dlsym` finds it.
    /// Null without a definition, and if only the loader can compute the address (thread-local or IFUNC).
    pub fn address_of(&self, name: &CStr) -> *const c_void {
        let fixed = |symbol: &&libc::Elf64_Sym| {
            let kind = symbol.st_info & 0xf;
            // `hide` sets the value to 0.
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
        // SAFETY: the table has a header of four words, a bloom filter of 64-bit words, buckets and chains. The last
        // word of each chain has its lowest bit set, so `index` stays below the number of symbols.
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
        // SAFETY: the version table is not null, and it has one word per symbol.
        self.versions.is_null() || unsafe { *self.versions.add(index) } & OUTDATED == 0
    }

    /// True if the object may call one of these functions through its table of calls, which the loader may fill when each
    /// is first made.
    pub fn calls(&self, names: &[&CStr]) -> bool {
        (0..self.call_count).any(|index| {
            // SAFETY: the index is below the number of entries in the table. Each has the index of a symbol in its upper
            // half, or 0, and the name is in the string table.
            let name = unsafe {
                let symbol = (*self.calls.add(index)).r_info >> 32;
                CStr::from_ptr(
                    self.strings
                        .add((*self.symbols.add(symbol as usize)).st_name as usize),
                )
            };
            names.contains(&name)
        })
    }

    /// True if the address is a stub: an undefined symbol of this object has it as its value.
    /// Only an object at its linked address (base 0) has stubs, so the value needs no relocation.
    pub fn has_stub_at(&self, address: u64) -> bool {
        (1..self.count()).any(|index| {
            // SAFETY: the index is below the number of symbols in the table.
            let symbol = unsafe { &*self.symbols.add(index) };
            symbol.st_value == address && symbol.st_shndx == 0
        })
    }

    /// Makes the named symbols undefined; false if the table cannot be made writable or read-only again.
    pub fn hide(&self, names: &[&CStr]) -> bool {
        // glibc treats a value of 0 as undefined.
        self.set_values(names, |_| Some(0))
    }

    /// Makes later lookups of the names in this object find the definitions of `other`; false as for `hide`. A name
    /// that `other` does not define stays.
    pub fn redirect(&self, names: &[&CStr], other: &Image) -> bool {
        self.set_values(names, |name| {
            let target = other.address_of(name) as u64;
            // The loader adds the base address, and the sum wraps.
            (target != 0).then(|| target.wrapping_sub(self.base))
        })
    }

    fn set_values(&self, names: &[&CStr], value: impl Fn(&CStr) -> Option<u64>) -> bool {
        let (page, start) = (crate::proc::procfs::page_bytes(), self.symbols as usize);
        let end = start + self.count() * size_of::<libc::Elf64_Sym>();
        let first = start & !(page - 1);
        let protect = |protection| {
            // SAFETY: these pages contain only read-only tables and stay readable. If they may contain code, they
            // stay executable.
            unsafe { libc::mprotect(first as *mut c_void, end - first, protection) == 0 }
        };
        if !protect(self.protection | libc::PROT_WRITE) {
            return false;
        }
        for name in names {
            let Some((symbol, value)) = self.definition(name).zip(value(name)) else {
                continue;
            };
            let symbol = ptr::from_ref(symbol).cast_mut();
            // SAFETY: the symbol is in the table, which is writable now. The loader reads the value with one load.
            unsafe { (&raw mut (*symbol).st_value).write_volatile(value) };
        }
        protect(self.protection)
    }
}

fn gnu_hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
    name.iter().fold(5381, step)
}

/// The number of dynamic symbols. ELF does not record it, so it is one past the end of the last chain.
///
/// # Safety
/// `table` is a well-formed DT_GNU_HASH table.
unsafe fn gnu_hash_symbol_count(table: *const u32) -> usize {
    // SAFETY: the table has a header of four words, a bloom filter of 64-bit words, buckets and chains.
    // The last word of each chain has its lowest bit set, so the loop ends inside the table.
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
