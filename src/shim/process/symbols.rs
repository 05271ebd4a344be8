//! Symbols of this process: looking them up, who owns `malloc`, and the hiding of `mallctl`.

use std::ffi::{c_char, c_int, c_void, CStr};

/// # Safety
/// `F` must be the type of a function pointer that fits the symbol.
pub unsafe fn lookup<F>(handle: *mut c_void, name: &CStr) -> Option<F> {
    // SAFETY: the name is NUL-terminated, dlsym takes any handle that dlopen gave, and F fits
    // the symbol by this function's contract.
    unsafe { cast(libc::dlsym(handle, name.as_ptr())) }
}

/// # Safety
/// `F` must be the type of a function pointer that fits the function at this address.
pub unsafe fn cast<F>(address: *const c_void) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: F fits the function at this address by this function's contract, and has the size
    // of an address.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
}

/// An address in this library. Not that of an exported function: the loader gives us, as everybody,
/// the first definition of such a name, which may be another library's or a stub of the program.
pub fn inside_us() -> *const c_void {
    inside_us as *const c_void
}

/// True for the address of something in this library.
pub fn is_inside_us(address: *const c_void) -> bool {
    extent_of(inside_us()).is_some_and(|(first, last)| (first..=last).contains(&(address as usize)))
}

/// The address that the program's own calls of this function go to.
pub fn first(name: &CStr) -> *const c_void {
    // RTLD_DEFAULT would begin with this library, which is linked to prefer its own symbols.
    // SAFETY: this only takes a handle to the program and what was loaded with it; the name is
    // NUL-terminated and the handle is never closed.
    unsafe {
        libc::dlsym(
            libc::dlopen(std::ptr::null(), libc::RTLD_LAZY),
            name.as_ptr(),
        )
    }
}

/// What this library itself has of a name, whoever comes before it; null where it is not loaded or has none.
pub fn in_library(library: &CStr, name: &CStr) -> *const c_void {
    // SAFETY: both are NUL-terminated; nothing is loaded, and the handle is never closed.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return std::ptr::null();
        }
        libc::dlsym(handle, name.as_ptr())
    }
}

/// True when the program's `malloc` is ours: no other allocator stands before us.
///
/// A program linked to a fixed address that passes `malloc` around (Debian's python3) holds a stub
/// that stands for it everywhere. The relatives whose address it does not take tell whom it calls.
pub fn owns_malloc() -> bool {
    for name in [c"malloc", c"calloc", c"realloc", c"free", c"posix_memalign"] {
        let address = first(name);
        if is_inside_us(address) {
            return true;
        }
        let image = Search::object_with(address).image;
        if image.is_some_and(|image| !image.has_stub_at(address as u64)) {
            return false;
        }
    }
    true
}

/// The jemalloc interface. Visible to `dlsym` only when jemalloc serves, because programs
/// (NVFlare's `get_allocator_type`) take the presence of `mallctl` for jemalloc's.
pub const JEMALLOC_ONLY: [&CStr; 11] = [
    c"mallctl",
    c"mallctlnametomib",
    c"mallctlbymib",
    c"malloc_stats_print",
    c"mallocx",
    c"rallocx",
    c"xallocx",
    c"sallocx",
    c"dallocx",
    c"sdallocx",
    c"nallocx",
];

/// Makes [`JEMALLOC_ONLY`] undefined in this library's own symbol table, as the dynamic loader
/// sees it from now on.
pub fn hide_jemalloc_interface() -> bool {
    let image = Search::object_with(inside_us()).image;
    image.is_some_and(|image| image.hide(&JEMALLOC_ONLY))
}

/// What is needed of a loaded ELF object.
struct Image {
    symbols: *mut libc::Elf64_Sym,
    strings: *const c_char,
    count: usize,
}

const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

#[repr(C)]
struct Dyn {
    tag: i64,
    value: u64,
}

impl Image {
    /// # Safety
    /// `dynamic` is the dynamic section of a loaded object, terminated by DT_NULL.
    unsafe fn from_dynamic(dynamic: *const Dyn, base: u64) -> Option<Image> {
        let mut tables = [0u64; 3];
        let mut entry = dynamic;
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
                _ => {}
            }
            // SAFETY: the tag was not DT_NULL, so an entry follows.
            entry = unsafe { entry.add(1) };
        }
        if tables.contains(&0) {
            return None;
        }
        Some(Image {
            symbols: tables[0] as *mut libc::Elf64_Sym,
            strings: tables[1] as *const c_char,
            // SAFETY: DT_GNU_HASH points to the object's hash table.
            count: unsafe { gnu_hash_symbol_count(tables[2] as *const u32) },
        })
    }

    /// True for a stub: a symbol that this object, which lies at its linked address, gives a value
    /// but does not define.
    fn has_stub_at(&self, address: u64) -> bool {
        (1..self.count).any(|index| {
            // SAFETY: index is below the number of symbols of the table.
            let symbol = unsafe { &*self.symbols.add(index) };
            symbol.st_value == address && symbol.st_shndx == 0
        })
    }

    /// Makes the named symbols undefined; false when the table cannot be written.
    fn hide(&self, names: &[&CStr]) -> bool {
        let (page, start) = (crate::process::procfs::page_bytes(), self.symbols as usize);
        let end = start + self.count * size_of::<libc::Elf64_Sym>();
        let first = start & !(page - 1);
        let protect = |protection| {
            // SAFETY: these pages hold read-only tables of this library, which was linked with
            // separate-code: no code of ours lies in them.
            unsafe { libc::mprotect(first as *mut c_void, end - first, protection) == 0 }
        };
        if !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return false;
        }
        for index in 1..self.count {
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

/// The first and the last address of the loaded object that holds this one.
pub fn extent_of(address: *const c_void) -> Option<(usize, usize)> {
    Search::object_with(address).extent
}

struct Search {
    address: u64,
    extent: Option<(usize, usize)>,
    image: Option<Image>,
}

impl Search {
    fn object_with(address: *const c_void) -> Search {
        let mut search = Search {
            address: address as u64,
            extent: None,
            image: None,
        };
        // SAFETY: the callback gets exactly the pointer that is passed here, and does not keep it.
        unsafe { libc::dl_iterate_phdr(Some(inspect), (&raw mut search).cast()) };
        search
    }
}

unsafe extern "C" fn inspect(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: dl_iterate_phdr passes a valid description and the pointer given to it.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the description says where the program headers are and how many.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr;
    let holds = |h: &libc::Elf64_Phdr| {
        let start = base + h.p_vaddr;
        h.p_type == libc::PT_LOAD && (start..start + h.p_memsz).contains(&search.address)
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let loads = || headers.iter().filter(|h| h.p_type == libc::PT_LOAD);
    let first = loads().map(|h| base + h.p_vaddr).min();
    let last = loads().map(|h| base + h.p_vaddr + h.p_memsz - 1).max();
    search.extent = first
        .zip(last)
        .map(|(first, last)| (first as usize, last as usize));
    if let Some(dynamic) = headers.iter().find(|h| h.p_type == libc::PT_DYNAMIC) {
        // SAFETY: the header points to the dynamic section of this loaded object.
        search.image = unsafe { Image::from_dynamic((base + dynamic.p_vaddr) as *const Dyn, base) };
    }
    1
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
