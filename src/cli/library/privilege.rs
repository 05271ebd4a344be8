//! Programs in which the loader ignores LD_PRELOAD without a message: they get privileges from their file
//! ("secure-execution mode", ld.so(8)).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::process::{getgid, getuid};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    SetId,
    FileCapabilities,
}

impl Privilege {
    /// The privileges that this process would get from the file if it executed it.
    pub fn of(file: &Path, metadata: &Metadata) -> Option<Self> {
        let ids = (getuid().as_raw(), getgid().as_raw());
        // Root has each capability already.
        let gets_capabilities = ids.0 != 0 && has_capabilities(file);
        let found = set_id(metadata, ids)
            .or_else(|| gets_capabilities.then_some(Self::FileCapabilities))?;
        (!are_ignored(file)).then_some(found)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::SetId => "is set-user-id or set-group-id",
            Self::FileCapabilities => "has file capabilities",
        }
    }

    pub fn remedy(self) -> &'static str {
        match self {
            Self::SetId => "start a copy without the mode bit (chmod ug-s), as the user that it needs",
            Self::FileCapabilities => {
                "remove them from the file (setcap -r), and grant them at the start: setpriv --ambient-caps, \
                 or AmbientCapabilities= in a unit of systemd"
            }
        }
    }
}

/// Without the group's execute bit, set-group-id means mandatory locking.
fn set_id(metadata: &Metadata, (user, group): (u32, u32)) -> Option<Privilege> {
    let changes_user = metadata.mode() & 0o4000 != 0 && metadata.uid() != user;
    let changes_group = metadata.mode() & 0o2010 == 0o2010 && metadata.gid() != group;
    (changes_user || changes_group).then_some(Privilege::SetId)
}

fn has_capabilities(file: &Path) -> bool {
    rustix::fs::getxattr(file, "security.capability", &mut [0; 64]).is_ok_and(|len| len > 0)
}

fn are_ignored(file: &Path) -> bool {
    let is_nosuid = rustix::fs::statvfs(file)
        .is_ok_and(|found| found.f_flag.contains(StatVfsMountFlags::NOSUID));
    is_nosuid || rustix::thread::no_new_privs().unwrap_or(false)
}
