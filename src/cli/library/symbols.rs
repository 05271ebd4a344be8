//! Where an ELF file defines `malloc`, and through which slots it calls it.

use std::io;
use std::path::Path;

use object::elf::{FileHeader64, PT_LOAD, SHN_UNDEF, SHT_DYNSYM};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym};
use object::{Endianness, FileKind, ReadCache, ReadRef};

type Header = FileHeader64<Endianness>;

/// One file's view of `malloc`. Addresses are as linked; add the load bias.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Malloc {
    pub is_defined: bool,
    /// Pointers that the loader fills with the address of the `malloc` it chose.
    pub slots: Vec<u64>,
    /// The address at which the start of the file was linked.
    pub first_address: u64,
}

impl Malloc {
    /// `None` for what is no 64-bit ELF file with a dynamic symbol table.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let cache = ReadCache::new(super::elf::open(path)?);
        match FileKind::parse(&cache) {
            Ok(FileKind::Elf64) => parse(&cache).map_err(io::Error::other),
            _ => Ok(None),
        }
    }
}

fn parse<'data, R: ReadRef<'data>>(data: R) -> object::Result<Option<Malloc>> {
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let table = sections.symbols(endian, data, SHT_DYNSYM)?;
    if table.is_empty() {
        return Ok(None);
    }
    let names = sections
        .section(table.string_section())?
        .data(endian, data)?;
    let is_malloc = |name: u32| {
        let rest = names.get(name as usize..).unwrap_or_default();
        rest.starts_with(b"malloc\0")
    };
    let mut found = Malloc::default();
    let mut indexes = Vec::new();
    for (index, symbol) in table.symbols().iter().enumerate() {
        if is_malloc(symbol.st_name(endian)) {
            found.is_defined |= symbol.st_shndx(endian) != SHN_UNDEF;
            indexes.push(index as u32);
        }
    }
    if !indexes.is_empty() {
        for section in sections.iter() {
            let Some((relocations, link)) = section.rela(endian, data)? else {
                continue;
            };
            let ours = relocations.iter().filter(|relocation| {
                link == table.section() && indexes.contains(&relocation.r_sym(endian, false))
            });
            found
                .slots
                .extend(ours.map(|relocation| relocation.r_offset(endian)));
        }
    }
    let loads = header.program_headers(endian, data)?.iter();
    let first = loads
        .filter(|program| program.p_type(endian) == PT_LOAD)
        .min_by_key(|program| program.p_offset(endian));
    found.first_address = first.map_or(0, |load| {
        load.p_vaddr(endian).wrapping_sub(load.p_offset(endian))
    });
    Ok(Some(found))
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
    fn this_program_calls_malloc_through_a_slot_and_defines_none() {
        let own = Malloc::read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert!(!own.is_defined);
        assert!(!own.slots.is_empty());
    }

    #[test]
    fn damaged_files_are_errors_and_no_panic() {
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
