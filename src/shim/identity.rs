//! Which process this is: NVFlare's name for it, its role and site. Found once, at load.

use std::sync::OnceLock;

use flarena_shared::defaults;
use flarena_shared::role::{self, Proc, Role};

use crate::{backend, env};

pub struct Identity {
    pub proc: Option<Proc>,
    pub role: Option<Role>,
    pub site: Option<String>,
    /// A small program that scripts start by the thousand.
    pub is_helper: bool,
}

impl Identity {
    pub fn proc_name(&self) -> &'static str {
        self.proc.map_or("-", Proc::name)
    }
}

/// Cold paths only: the first call allocates.
pub fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let found = role::identify(env::arguments(), backend::environment().is_trainer());
        Identity {
            proc: found.proc,
            role: backend::settings().role.or(found.role()),
            site: found
                .site
                .map(|site| String::from_utf8_lossy(site).into_owned()),
            is_helper: found.proc.is_none() && is_helper(),
        }
    })
}

fn is_helper() -> bool {
    let program = env::arguments().next().unwrap_or_default();
    let name = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
    // A login shell is called `-bash`.
    let name = name.strip_prefix(b"-").unwrap_or(name);
    defaults::HELPERS
        .iter()
        .any(|helper| helper.as_bytes() == name)
}
