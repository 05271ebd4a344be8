//! Reads from an ELF file whether it defines `malloc`, and through which pointers it calls
//! `malloc`.

use std::io;
use std::path::Path;

use object::elf::{FileHeader64, PT_LOAD, SHN_UNDEF, SHT_DYNSYM};
use object::read::elf::{
    FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable,
};
use object::{Endianness, FileKind, ReadCache, ReadRef};

type Header = FileHeader64<Endianness>;

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
        match FileKind::parse(&cache) {
            Ok(FileKind::Elf64) => Self::parse(&cache).map_err(io::Error::other),
            _ => Ok(None),
        }
    }

    fn parse<'data, R: ReadRef<'data>>(data: R) -> object::Result<Option<Self>> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, data)?;
        let table = sections.symbols(endian, data, SHT_DYNSYM)?;
        if table.is_empty() {
            return Ok(None);
        }
        let symbols = malloc_symbols(&table, endian);
        Ok(Some(Self {
            is_defined: symbols.iter().any(|symbol| symbol.is_defined),
            mallctl: mallctl(&table, endian),
            slots: slots(&sections, &table, &symbols, endian, data)?,
            first_address: first_address(header.program_headers(endian, data)?, endian),
        }))
    }
}

/// One entry named `malloc`; a file with symbol versions can have several.
struct MallocSymbol {
    index: u32,
    is_defined: bool,
}

fn malloc_symbols<'data, R: ReadRef<'data>>(
    table: &SymbolTable<'data, Header, R>,
    endian: Endianness,
) -> Vec<MallocSymbol> {
    let is_malloc = |symbol: &<Header as FileHeader>::Sym| {
        matches!(table.symbol_name(endian, symbol), Ok(b"malloc"))
    };
    let symbols = (0..).zip(table.symbols());
    symbols
        .filter(|(_, symbol)| is_malloc(symbol))
        .map(|(index, symbol)| MallocSymbol {
            index,
            is_defined: symbol.st_shndx(endian) != SHN_UNDEF,
        })
        .collect()
}

fn mallctl<'data, R: ReadRef<'data>>(
    table: &SymbolTable<'data, Header, R>,
    endian: Endianness,
) -> Option<String> {
    let is_defined = |symbol: &&<Header as FileHeader>::Sym| symbol.st_shndx(endian) != SHN_UNDEF;
    let mut names = table.symbols().iter().filter(is_defined);
    names.find_map(|symbol| {
        let name = table.symbol_name(endian, symbol).ok()?;
        let is_mallctl = name.ends_with(b"mallctl");
        is_mallctl.then(|| String::from_utf8_lossy(name).into_owned())
    })
}

/// The places of the relocations that refer to one of the symbols.
fn slots<'data, R: ReadRef<'data>>(
    sections: &SectionTable<'data, Header, R>,
    table: &SymbolTable<'data, Header, R>,
    symbols: &[MallocSymbol],
    endian: Endianness,
    data: R,
) -> object::Result<Vec<u64>> {
    let mut slots = Vec::new();
    if symbols.is_empty() {
        return Ok(slots);
    }
    let is_malloc = |index: u32| symbols.iter().any(|symbol| symbol.index == index);
    for section in sections.iter() {
        let Some((relocations, link)) = section.rela(endian, data)? else {
            continue;
        };
        if link == table.section() {
            let matching = relocations
                .iter()
                .filter(|relocation| is_malloc(relocation.r_sym(endian, false)));
            slots.extend(matching.map(|relocation| relocation.r_offset(endian)));
        }
    }
    Ok(slots)
}

fn first_address(segments: &[<Header as FileHeader>::ProgramHeader], endian: Endianness) -> u64 {
    let loads = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == PT_LOAD);
    let first = loads.min_by_key(|segment| segment.p_offset(endian));
    first.map_or(0, |load| {
        load.p_vaddr(endian).wrapping_sub(load.p_offset(endian))
    })
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
