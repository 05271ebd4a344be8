//! The header of an ELF file: its machine and its loader.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf::{self, FileHeader32, FileHeader64, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{Endianness, FileKind, ReadCache, ReadRef};

use super::sanitizer::{is_init, is_runtime};

/// The header of a program or a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub machine: &'static str,
    /// The loader of a program; `None` for a static program or a library.
    pub interpreter: Option<String>,
    /// The runtime of a sanitizer: a needed library, or linked into the program.
    pub sanitizer: Option<String>,
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
    let machine = machine_name(header.e_machine(endian), header.is_class_64());
    Ok(Header {
        machine,
        interpreter,
        // A file that was stripped of its sections runs, too.
        sanitizer: sanitizer(header, endian, data).unwrap_or(None),
    })
}

fn sanitizer<'data, H, R>(header: &H, endian: Endianness, data: R) -> object::Result<Option<String>>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let sections = header.sections(endian, data)?;
    if let Some(library) = needed_runtime(&sections, endian, data)? {
        return Ok(Some(format!("runtime {library}")));
    }
    // gcc exports no function of a runtime that is linked in, so only a program with all symbols shows it.
    for table in [SHT_DYNSYM, SHT_SYMTAB] {
        if let Some(function) = linked_in_runtime(&sections, endian, data, table)? {
            return Ok(Some(format!("linked-in runtime ({function})")));
        }
    }
    Ok(None)
}

fn needed_runtime<'data, H, R>(
    sections: &SectionTable<'data, H, R>,
    endian: Endianness,
    data: R,
) -> object::Result<Option<String>>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    for section in sections.iter() {
        let Some((entries, link)) = section.dynamic(endian, data)? else {
            continue;
        };
        let strings = sections.strings(endian, data, link)?;
        for entry in entries {
            if entry.tag32(endian) != Some(elf::DT_NEEDED) {
                continue;
            }
            let Some(name) = entry.val32(endian).and_then(|at| strings.get(at).ok()) else {
                continue;
            };
            let name = String::from_utf8_lossy(name);
            if is_runtime(&name) {
                return Ok(Some(name.into_owned()));
            }
        }
    }
    Ok(None)
}

/// The function with which a runtime starts, if the table defines one.
fn linked_in_runtime<'data, H, R>(
    sections: &SectionTable<'data, H, R>,
    endian: Endianness,
    data: R,
    table: u32,
) -> object::Result<Option<String>>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let symbols = sections.symbols(endian, data, table)?;
    if symbols.is_empty() {
        return Ok(None);
    }
    // One pass over all names is faster than a look-up of each.
    let names = sections.section(symbols.string_section())?;
    let names = names.data(endian, data)?;
    if !names.split(|&byte| byte == 0).any(is_init) {
        return Ok(None);
    }
    let is_defined = |symbol: &&H::Sym| symbol.st_shndx(endian) != SHN_UNDEF;
    let mut defined = symbols.iter().filter(is_defined);
    Ok(defined.find_map(|symbol| {
        let name = symbols.symbol_name(endian, symbol).ok()?;
        is_init(name).then(|| String::from_utf8_lossy(name).into_owned())
    }))
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
