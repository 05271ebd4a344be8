//! The header of an ELF file: its machine and its loader.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf::{self, FileHeader32, FileHeader64, SHN_UNDEF};
use object::read::elf::{
    Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader, Sym, SymbolTable,
};
use object::{Endianness, FileKind, ReadCache, ReadRef};

use super::sanitizer::{is_init, is_runtime};

/// The header of a program or a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub machine: &'static str,
    /// The loader of a program; `None` for a static program or a library.
    pub interpreter: Option<String>,
}

impl Header {
    /// The header, or `None` if the file is not an ELF file.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let cache = ReadCache::new(open(path)?);
        let header = match FileKind::parse(&cache) {
            Ok(FileKind::Elf32) => parse::<FileHeader32<Endianness>, _>(&cache),
            Ok(FileKind::Elf64) => parse::<FileHeader64<Endianness>, _>(&cache),
            _ => return Ok(None),
        };
        header.map(Some).map_err(io::Error::other)
    }

    pub fn uses_musl(&self) -> bool {
        let loader = self.interpreter.as_deref();
        loader.is_some_and(|path| path.contains("/ld-musl-"))
    }
}

/// Opens a file without waiting. Another user may have put a pipe in its place.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

fn parse<'data, H, R>(data: R) -> object::Result<Header>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = H::parse(data)?;
    let endian = header.endian()?;
    let mut interpreter = None;
    for program in header.program_headers(endian, data)? {
        if let Some(path) = program.interpreter(endian, data)? {
            interpreter = Some(String::from_utf8_lossy(path).into_owned());
        }
    }
    Ok(Header {
        machine: machine_name(header.e_machine(endian), header.is_class_64()),
        interpreter,
    })
}

type Elf<'data> = ElfFile64<'data, Endianness, &'data ReadCache<File>>;

/// The runtime of a sanitizer: a needed library, or linked into the program.
pub fn sanitizer(program: &Path) -> Option<String> {
    let cache = ReadCache::new(open(program).ok()?);
    // A file that was stripped of its sections runs, too.
    let file = Elf::parse(&cache).ok()?;
    if let Some(library) = needed_runtime(&file) {
        return Some(format!("runtime {library}"));
    }
    // gcc exports no function of a runtime that is linked in, so only a program with all symbols shows it.
    let tables = [file.elf_dynamic_symbol_table(), file.elf_symbol_table()];
    let function = tables
        .into_iter()
        .find_map(|symbols| linked_in_runtime(&file, symbols))?;
    Some(format!("linked-in runtime ({function})"))
}

fn needed_runtime(file: &Elf) -> Option<String> {
    let (endian, data, sections) = (file.endian(), file.data(), file.elf_section_table());
    let (entries, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let needed = entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
    let names = needed.filter_map(|entry| strings.get(entry.val32(endian)?).ok());
    let mut names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    names.find(|name| is_runtime(name))
}

/// The function with which a runtime starts, if the table defines one.
fn linked_in_runtime<'data>(
    file: &Elf<'data>,
    symbols: &SymbolTable<'data, FileHeader64<Endianness>, &'data ReadCache<File>>,
) -> Option<String> {
    let (endian, sections) = (file.endian(), file.elf_section_table());
    // One pass over all names is faster than a look-up of each.
    let names = sections.section(symbols.string_section()).ok()?;
    let names = names.data(endian, file.data()).ok()?;
    if !names.split(|&byte| byte == 0).any(is_init) {
        return None;
    }
    let mut defined = symbols
        .iter()
        .filter(|symbol| symbol.st_shndx(endian) != SHN_UNDEF);
    defined.find_map(|symbol| {
        let name = symbols.symbol_name(endian, symbol).ok()?;
        is_init(name).then(|| String::from_utf8_lossy(name).into_owned())
    })
}

fn machine_name(machine: u16, is_64: bool) -> &'static str {
    match (machine, is_64) {
        (elf::EM_X86_64, true) => "x86_64",
        (elf::EM_X86_64, false) => "x32",
        (elf::EM_AARCH64, true) => "aarch64",
        (elf::EM_386, _) => "i386",
        (elf::EM_ARM, _) => "arm",
        (elf::EM_RISCV, true) => "riscv64",
        (elf::EM_PPC64, _) => "ppc64le",
        (elf::EM_S390, _) => "s390x",
        _ => "another machine",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_header_of_this_program_names_this_machine_and_a_loader() {
        let own = Header::read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert_eq!(own.machine, std::env::consts::ARCH);
        assert!(own.interpreter.is_some() && !own.uses_musl());
    }

    #[test]
    fn a_script_is_not_an_elf_file() {
        let scratch = Scratch::new();
        let script = scratch.write("run.sh", "#!/bin/sh\n");
        assert_eq!(Header::read(&script).unwrap(), None);
        assert_eq!(Header::read(&scratch.write("empty", "")).unwrap(), None);
    }

    #[test]
    fn a_truncated_elf_file_does_not_panic() {
        let scratch = Scratch::new();
        let whole = std::fs::read("/bin/sh").unwrap();
        for length in [4, 16, 40, 64, 100] {
            let path = scratch.path().join(format!("cut-{length}"));
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(!matches!(Header::read(&path), Ok(Some(_))), "{length}");
        }
    }
}
