//! Links for libraries whose path LD_PRELOAD cannot contain. The loader splits LD_PRELOAD at spaces
//! and colons, expands `$`, and has no quoting. Such a library gets a link in a private directory.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::search::FILE_NAME;
use flarena_shared::fnv;

pub fn can_be_preloaded(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    path.is_absolute() && !bytes.iter().any(|byte| b" :$".contains(byte))
}

/// The path, or a link to it if LD_PRELOAD cannot contain the path.
pub fn for_preload(library: &Path, homes: &[PathBuf]) -> Result<PathBuf, String> {
    if can_be_preloaded(library) {
        return Ok(library.to_owned());
    }
    let failure = "LD_PRELOAD cannot contain a path with a space, a colon or a dollar sign";
    homes
        .iter()
        .filter(|home| can_be_preloaded(home))
        .find_map(|home| link_in(home, library).ok())
        .ok_or_else(|| failure.to_owned())
}

/// Directories for links. The cache directory comes first, because a runtime directory is deleted
/// at the end of the session, and a long job may run longer.
pub fn homes() -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache")));
    let user = rustix::process::geteuid().as_raw();
    let fallback = std::env::temp_dir().join(format!("flarena-{user}"));
    cache
        .map(|dir| dir.join("flarena"))
        .into_iter()
        .chain([fallback])
        .collect()
}

/// Creates the link in a directory of its target, so that two versions do not share a name.
fn link_in(home: &Path, library: &Path) -> io::Result<PathBuf> {
    let hash = fnv::append(fnv::EMPTY, library.as_os_str().as_bytes());
    let dir = home.join(format!("lib-{hash:016x}"));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)?;
    refuse_shared(home)?;
    refuse_shared(&dir)?;
    let link = dir.join(FILE_NAME);
    match symlink(library, &link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    if fs::read_link(&link)? != library {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok(link)
}

/// Refuses a directory that another user can write: that user could replace the library.
fn refuse_shared(dir: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(dir)?;
    let is_own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_own || metadata.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_plain_path_needs_no_link() {
        let plain = Path::new("/opt/flarena/lib/libflarena.so");
        assert_eq!(for_preload(plain, &[]).unwrap(), plain);
    }

    #[test]
    fn a_path_with_a_space_colon_or_dollar_sign_gets_a_link() {
        let scratch = Scratch::new();
        for name in [
            "my libs/libflarena.so",
            "a:b/libflarena.so",
            "$ORIGIN/libflarena.so",
        ] {
            let library = scratch.write(name, "content");
            let home = scratch.path().join("home");
            let link = for_preload(&library, std::slice::from_ref(&home)).unwrap();
            assert!(can_be_preloaded(&link));
            assert_eq!(fs::read_to_string(&link).unwrap(), "content");
            assert_eq!(
                for_preload(&library, &[home]).unwrap(),
                link,
                "the same link as before"
            );
        }
    }

    #[test]
    fn no_link_is_created_in_a_directory_that_others_can_write() {
        let scratch = Scratch::new();
        let library = scratch.write("my libs/libflarena.so", "");
        let home = scratch.path().join("open");
        fs::create_dir(&home).unwrap();
        fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(for_preload(&library, &[home])
            .unwrap_err()
            .contains("space"));
    }
}
