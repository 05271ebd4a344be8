//! The places where libflarena.so, its Python hooks and the system's jemalloc may be.

use std::fs;
use std::path::{Path, PathBuf};

pub const FILE_NAME: &str = "libflarena.so";

/// Places of libflarena.so for a command in the directory `beside`. Those near the command come
/// first, so that a build tree, a wheel and an unpacked release use their own library.
pub fn libraries(beside: &Path) -> Vec<PathBuf> {
    let multiarch = multiarch();
    let near = ["", &multiarch, "lib", "target/release", "..", "../lib"];
    let mut dirs: Vec<PathBuf> = near.map(|dir| beside.join(dir)).into();
    dirs.push(beside.join("../lib").join(&multiarch));
    dirs.push(beside.join("../lib64"));
    for lib in ["../lib", "../lib64"] {
        dirs.extend(wheels(&beside.join(lib)));
    }
    dirs.push("/usr/local/lib".into());
    dirs.push(Path::new("/usr/lib").join(&multiarch));
    dirs.extend(["/usr/lib64", "/usr/lib", "/opt/flarena/lib"].map(PathBuf::from));
    dirs.into_iter().map(|dir| dir.join(FILE_NAME)).collect()
}

/// Places of the directory with the hooks' `sitecustomize.py`, for a library in `beside`.
pub fn hooks(beside: &Path) -> Vec<PathBuf> {
    let dirs = [
        "hooks",
        "flarena/hooks",
        "../../src/python/flarena/hooks",
        "../share/flarena/python/flarena/hooks",
        "../../share/flarena/python/flarena/hooks",
    ];
    dirs.map(|dir| beside.join(dir)).into()
}

/// The file names of jemalloc. A job that wants jemalloc gets the system's where flarena cannot run.
pub const JEMALLOC: [&str; 3] = ["libjemalloc.so.2", "libjemalloc.so.1", "libjemalloc.so"];

/// Places of a library of the system with one of these names.
pub fn system_libraries(names: &[&str]) -> Vec<PathBuf> {
    let multiarch = format!("lib/{}", multiarch());
    let mut places = Vec::new();
    for root in ["/usr", "/", "/usr/local"] {
        for dir in [&multiarch, "lib64", "lib"] {
            let dir = Path::new(root).join(dir);
            places.extend(names.iter().map(|name| dir.join(name)));
        }
    }
    places
}

fn multiarch() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// `python3*/site-packages/flarena`, sorted by name. Debian's Python uses `dist-packages`.
fn wheels(lib: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"python3"))
        .flat_map(|entry| {
            ["site-packages", "dist-packages"].map(|dir| entry.path().join(dir).join("flarena"))
        })
        .collect();
    dirs.sort();
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_library_of_a_wheel_precedes_an_installed_one() {
        let scratch = Scratch::new();
        scratch.write("venv/bin/flarena", "");
        let wheel = "venv/lib/python3.11/site-packages/flarena/libflarena.so";
        scratch.write(wheel, "");
        let found = libraries(&scratch.path().join("venv/bin"));
        let is_wheel = |path: &PathBuf| path.ends_with("site-packages/flarena/libflarena.so");
        let wheel = found.iter().position(is_wheel).unwrap();
        let installed = found
            .iter()
            .position(|path| path.starts_with("/usr/local/lib"));
        assert!(wheel < installed.unwrap());
    }

    #[test]
    fn wheels_are_found_in_dist_packages_and_lib64() {
        let scratch = Scratch::new();
        scratch.write("bin/flarena", "");
        for wheel in [
            "lib/python3.11/dist-packages/flarena/libflarena.so",
            "lib64/python3.12/site-packages/flarena/libflarena.so",
        ] {
            scratch.write(wheel, "");
            let found = libraries(&scratch.path().join("bin"));
            let path = wheel.split_once('/').unwrap().1;
            assert!(
                found.iter().any(|library| library.ends_with(path)),
                "{wheel}"
            );
        }
    }

    #[test]
    fn the_library_beside_the_command_is_first() {
        let found = libraries(Path::new("/src/target/release"));
        assert_eq!(found[0], Path::new("/src/target/release/libflarena.so"));
    }

    #[test]
    fn the_systems_jemalloc_is_searched_first_in_the_multiarch_directory() {
        let first = &system_libraries(&JEMALLOC)[0];
        assert!(first.to_string_lossy().contains(std::env::consts::ARCH));
        assert!(first.ends_with("libjemalloc.so.2"));
    }
}
