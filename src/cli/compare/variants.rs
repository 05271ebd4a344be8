//! The variants of a comparison: the command plain, with other allocators, and on flarena.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::ValueEnum;

use super::model::{FLARENA, PLAIN};
use crate::library::{self, search};
use crate::run::{self, Environment};

/// An allocator that a distribution packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Other {
    Libjemalloc,
    Libtcmalloc,
    Mimalloc,
    Tbbmalloc,
}

impl Other {
    /// Its file names, the newest first, and Debian's package.
    fn files_and_package(self) -> (&'static [&'static str], &'static str) {
        match self {
            Other::Libjemalloc => (&search::JEMALLOC, "libjemalloc2"),
            Other::Libtcmalloc => (
                &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
                "libtcmalloc-minimal4",
            ),
            Other::Mimalloc => (&["libmimalloc.so.3", "libmimalloc.so.2"], "libmimalloc2.0"),
            Other::Tbbmalloc => (&["libtbbmalloc_proxy.so.2"], "libtbbmalloc2"),
        }
    }
}

/// One way to start the command.
#[derive(Debug, Clone)]
pub struct Variant {
    pub name: String,
    /// The preloaded library.
    pub library: Option<PathBuf>,
    pub environment: Environment,
}

/// All variants, the plain one first, and a note about one that is left out.
pub fn all(command: &[OsString], with: &[Other]) -> anyhow::Result<(Vec<Variant>, Option<String>)> {
    let flarena = library::find().map_err(|unusable| anyhow::anyhow!("{unusable}"))?;
    let hooks = flarena.hooks.as_deref();
    let mut variants = vec![Variant {
        name: PLAIN.to_owned(),
        library: None,
        environment: run::without_flarena(None, hooks),
    }];
    let mut note = None;
    let mut others = vec![Other::Libjemalloc];
    others.extend(with.iter().filter(|other| **other != Other::Libjemalloc));
    for other in others {
        let name = other.to_possible_value();
        let name = name.map_or(String::new(), |value| value.get_name().to_owned());
        let (files, package) = other.files_and_package();
        match library::system_allocator(files) {
            Some(path) => variants.push(Variant {
                name,
                environment: run::without_flarena(Some(&path), hooks),
                library: Some(path),
            }),
            None if with.contains(&other) => {
                anyhow::bail!("{name} was not found: install {package}, or leave it out of --with")
            }
            None => {
                note = Some(format!(
                    "{name} is not installed ({package}), and is left out"
                ))
            }
        }
    }
    for mode in ["glibc", "jemalloc"] {
        let environment = run::on_flarena(command, mode, &flarena)
            .map_err(|why| anyhow::anyhow!("there is nothing to compare: {why}"))?;
        variants.push(Variant {
            name: format!("{FLARENA}{mode}"),
            library: Some(flarena.path.clone()),
            environment,
        });
    }
    Ok((variants, note))
}
