//! The number of glibc's arenas: the user's, or the default of the role, for this process and its children.

use std::ffi::c_int;

use flarena_shared::settings::{setting, Key};
use flarena_shared::{parse, role};

use super::inherited;
use crate::abi::statistics;
use crate::backends::choose;
use flarena_sys::env::Snapshot;
use flarena_sys::{config, identity, owner};

const M_ARENA_MAX: c_int = -8;

/// Applies the default of the role unless the user chose a number. This process gets it by mallopt,
/// because glibc has read its environment already; children get it by the environment. Returns the
/// default, so that children can distinguish it from the user's choice.
pub fn apply_default(environment: &Snapshot, owner: bool) -> Option<String> {
    if environment.malloc_tunable("arena_max").is_some() {
        return None;
    }
    let given = config::settings().arena_max;
    // A parent with this library has exported its own default.
    let parents = environment.inherited("arena_max").and_then(parse::number);
    if given.is_some() && given.map(u64::from) != parents {
        owner::set_arena_max(given);
        return None;
    }
    let arenas = role::arenas(identity::identity().role());
    owner::set_arena_max(Some(arenas));
    if owner && !choose::is_jemalloc() {
        // SAFETY: mallopt takes any numbers and refuses what it does not know.
        unsafe { statistics::mallopt(M_ARENA_MAX, arenas as c_int) };
    }
    inherited::export(setting(Key::ArenaMax).name, &arenas.to_string());
    Some(arenas.to_string())
}
