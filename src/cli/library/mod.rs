//! Finds libflarena.so, and tries it in a child process before a job depends on it.

pub mod elf;
pub mod privilege;
mod probe;
pub mod program;
pub mod sanitizer;
pub mod search;
pub mod symbols;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use elf::Header;
use flarena_shared::system_error::reason;
pub use probe::answers;

/// A library that loaded in a child process.
#[derive(Debug, Clone)]
pub struct Library {
    /// A path that LD_PRELOAD can contain.
    pub path: PathBuf,
    pub version: String,
    /// The directory of its Python hooks.
    pub hooks: Option<PathBuf>,
}

/// Why no library can be used, in one line.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{reason}", path.as_ref().map_or(String::new(), |path| format!("{} cannot be used: ", path.display())))]
pub struct Unusable {
    pub path: Option<PathBuf>,
    pub reason: String,
}

/// Finds the library and tries it. With `FLARENA_LIB` no other library is tried.
pub fn find() -> Result<Library, Unusable> {
    let path = locate(std::env::var_os("FLARENA_LIB"), &own_directory())?;
    check(&path).map_err(|reason| Unusable {
        path: Some(path),
        reason,
    })
}

fn locate(named: Option<OsString>, beside: &Path) -> Result<PathBuf, Unusable> {
    let unusable = |reason| Unusable { path: None, reason };
    if let Some(path) = named.filter(|path| !path.is_empty()) {
        return std::path::absolute(path)
            .map_err(|error| unusable(format!("FLARENA_LIB: {error}")));
    }
    let mut places = search::libraries(beside).into_iter();
    places.find(|path| path.is_file()).ok_or_else(|| {
        let here = std::env::consts::ARCH;
        unusable(format!(
            "libflarena.so was not found for {here} (FLARENA_LIB can name it)"
        ))
    })
}

fn check(path: &Path) -> Result<Library, String> {
    // Resolve links and `..`: they may refer to another file later, or from another directory.
    let path = fs::canonicalize(path).map_err(|error| reason(&error))?;
    // The loader splits LD_PRELOAD at spaces and colons, expands `$`, and has no quoting.
    if path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| b" :$".contains(byte))
    {
        return Err("LD_PRELOAD cannot contain a path with a space, a colon or a dollar sign; copy it elsewhere".to_owned());
    }
    let here = std::env::consts::ARCH;
    match Header::read(&path).map_err(|error| reason(&error))? {
        None => return Err("it is not a library".to_owned()),
        Some(Header { machine, .. }) if machine != here => {
            return Err(format!("it is built for {machine}, this machine is {here}"));
        }
        Some(_) => {}
    }
    let version = probe::version_of(&path)?;
    let beside = path.parent().unwrap_or(Path::new("/"));
    let is_hooks = |dir: &PathBuf| dir.join("sitecustomize.py").is_file();
    let hooks = search::hooks(beside).into_iter().find(is_hooks);
    let hooks = hooks.and_then(|dir| fs::canonicalize(dir).ok());
    Ok(Library {
        path,
        version,
        hooks,
    })
}

/// Another allocator of the system, if it loads in a child process. `names` are its file names.
pub fn system_allocator(names: &[&str]) -> Option<PathBuf> {
    let found = search::system_libraries(names).into_iter();
    found
        .filter(|path| path.is_file())
        .find(|path| probe::loads_silently(path).is_ok())
}

fn own_directory() -> PathBuf {
    let exe = std::env::current_exe().ok();
    exe.and_then(|exe| exe.parent().map(Path::to_owned))
        .unwrap_or_else(|| "/".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_path_that_ld_preload_cannot_contain_is_refused() {
        let scratch = Scratch::new();
        for name in ["my libs/x.so", "a:b/x.so", "$ORIGIN/x.so"] {
            let refusal = check(&scratch.write(name, "")).unwrap_err();
            assert!(refusal.contains("LD_PRELOAD cannot contain"), "{refusal}");
        }
    }

    #[test]
    fn with_flarena_lib_no_other_library_is_tried() {
        let scratch = Scratch::new();
        scratch.write("libflarena.so", "");
        let named = locate(Some("/nowhere/libflarena.so".into()), scratch.path()).unwrap();
        assert_eq!(named, Path::new("/nowhere/libflarena.so"));
        assert_eq!(check(&named).unwrap_err(), "No such file or directory");
    }

    #[test]
    fn the_library_beside_the_command_is_found() {
        let scratch = Scratch::new();
        let library = scratch.write("libflarena.so", "");
        assert_eq!(locate(None, scratch.path()).unwrap(), library);
        assert_eq!(locate(Some("".into()), scratch.path()).unwrap(), library);
    }

    #[test]
    fn a_library_for_another_machine_is_refused() {
        let scratch = Scratch::new();
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        let other = if std::env::consts::ARCH == "aarch64" {
            62u16
        } else {
            183
        };
        bytes[18..20].copy_from_slice(&other.to_le_bytes());
        let path = scratch.path().join("libflarena.so");
        fs::write(&path, bytes).unwrap();
        assert!(check(&path).unwrap_err().starts_with("it is built for"));
    }

    #[test]
    fn a_text_file_is_not_a_library() {
        let scratch = Scratch::new();
        let path = scratch.write("libflarena.so", "hello\n");
        assert_eq!(check(&path).unwrap_err(), "it is not a library");
    }
}
