//! Reads from an ELF file whether it defines `malloc`, and through which pointers it calls
//! `malloc`.

use std::io;
use std::path::Path;

use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, ReadCache, RelocationTarget};

/// `malloc` in one file. Addresses are as linked; add the load bias.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Malloc {
    pub is_defined: bool,
    /// The name of a defined `mallctl`, which a jemalloc exports, perhaps with a prefix.
    pub mallctl: Option<String>,
    /// Pointers in which the loader stores the address of the `malloc` that it bound.
    pub slots: Vec<u64>,
    /// The linked address of the start of the file.
    pub first_address: u64,
}

impl Malloc {
    /// `None` if the file is not a 64-bit ELF file with a dynamic symbol table.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let cache = ReadCache::new(super::elf::open(path)?);
        if !matches!(FileKind::parse(&cache), Ok(FileKind::Elf64)) {
            return Ok(None);
        }
        let file = ElfFile64::<Endianness, _>::parse(&cache).map_err(io::Error::other)?;
        if file.elf_dynamic_symbol_table().is_empty() {
            return Ok(None);
        }
        let mut found = Self::default();
        // A file with symbol versions can have several symbols named `malloc`.
        let mut mallocs = Vec::new();
        for symbol in file.dynamic_symbols() {
            let name = symbol.name_bytes().unwrap_or_default();
            if name == b"malloc" {
                found.is_defined |= !symbol.is_undefined();
                mallocs.push(symbol.index());
            } else if !symbol.is_undefined() && name.ends_with(b"mallctl") {
                found.mallctl = Some(String::from_utf8_lossy(name).into_owned());
            }
        }
        if !mallocs.is_empty() {
            let relocations = file.dynamic_relocations().into_iter().flatten();
            let slots = relocations.filter(|(_, relocation)| match relocation.target() {
                RelocationTarget::Symbol(index) => mallocs.contains(&index),
                _ => false,
            });
            found.slots = slots.map(|(slot, _)| slot).collect();
        }
        let endian = file.endian();
        let segments = file.elf_program_headers().iter();
        let loads = segments.filter(|segment| segment.p_type(endian) == PT_LOAD);
        found.first_address = loads
            .min_by_key(|segment| segment.p_offset(endian))
            .map_or(0, |load| {
                load.p_vaddr(endian).wrapping_sub(load.p_offset(endian))
            });
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::parse_maps;
    use crate::scratch::Scratch;

    fn libc() -> std::path::PathBuf {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = parse_maps(&maps)
            .into_iter()
            .find(|map| map.file_name() == "libc.so.6");
        libc.unwrap().name.into()
    }

    #[test]
    fn the_c_library_defines_malloc() {
        assert!(Malloc::read(&libc()).unwrap().unwrap().is_defined);
    }

    #[test]
    fn this_program_calls_malloc_through_a_slot_and_does_not_define_it() {
        let own = Malloc::read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert!(!own.is_defined);
        assert!(!own.slots.is_empty());
    }

    #[test]
    fn damaged_files_do_not_panic() {
        let scratch = Scratch::new();
        let whole = std::fs::read(libc()).unwrap();
        for length in [0, 64, 1000, 100_000, whole.len() - 100] {
            let path = scratch.path().join(format!("cut-{length}"));
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(!matches!(Malloc::read(&path), Ok(Some(_))), "{length}");
        }
        let mut odd = whole;
        odd.iter_mut()
            .skip(64)
            .step_by(7)
            .for_each(|byte| *byte ^= 0x5a);
        let path = scratch.path().join("odd");
        std::fs::write(&path, odd).unwrap();
        let _ = Malloc::read(&path);
    }
}
