//! Who is at the other end of the control channel, by what the kernel says, and whether it may ask.

use std::ffi::c_int;

use flarena_sys::proc::procfs;

/// What the kernel shows for a user that has no number here, unless the system was told another.
const OVERFLOW_UID: u32 = 65_534;

/// The same user, or root.
pub fn may_ask(client: c_int) -> bool {
    let Some(uid) = uid_of(client) else {
        return false;
    };
    let own = rustix::process::geteuid().as_raw();
    (uid == 0 || uid == own) && !stands_for_others(uid)
}

fn uid_of(client: c_int) -> Option<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the buffer has the length that is said.
    let error = unsafe {
        libc::getsockopt(
            client,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut len,
        )
    };
    (error == 0).then_some(peer.uid)
}

/// In a user namespace everybody who has no number in it looks like one user, and that may be our own.
fn stands_for_others(uid: u32) -> bool {
    let mut buffer = [0; 32];
    let overflow = procfs::read_file(c"/proc/sys/kernel/overflowuid", &mut buffer)
        .and_then(procfs::leading_number)
        .map_or(OVERFLOW_UID, |number| number as u32);
    if uid != overflow && uid != OVERFLOW_UID {
        return false;
    }
    let mut buffer = [0; 256];
    !procfs::read_file(c"/proc/self/uid_map", &mut buffer).is_some_and(gives_everybody_a_number)
}

/// The map of the first namespace, where every user is itself.
fn gives_everybody_a_number(map: &[u8]) -> bool {
    let mut fields = map.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty());
    let first = [fields.next(), fields.next(), fields.next()];
    first == [Some(&b"0"[..]), Some(b"0"), Some(b"4294967295")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_namespace_gives_everybody_a_number() {
        let first = b"         0          0 4294967295\n";
        assert!(gives_everybody_a_number(first));
        for map in [
            &b"0 1000 1\n1 100000 65536\n"[..],
            b"65534 1000 1\n",
            b"0 1000 4294967295\n",
            b"",
        ] {
            assert!(!gives_everybody_a_number(map));
        }
    }
}
