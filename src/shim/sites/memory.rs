//! Reading the interpreter's structures: directly, or so that a wrong address is an answer and no crash.

/// Reads of addresses that may be wrong. `None`: nothing is there.
pub trait Memory {
    fn read<const N: usize>(&self, address: usize) -> Option<[u8; N]>;

    #[inline(always)]
    fn word(&self, address: usize) -> Option<usize> {
        self.read(address).map(usize::from_ne_bytes)
    }

    #[inline(always)]
    fn int(&self, address: usize) -> Option<i32> {
        self.read(address).map(i32::from_ne_bytes)
    }

    #[inline(always)]
    fn byte(&self, address: usize) -> Option<u8> {
        self.read(address).map(|[byte]| byte)
    }
}

/// Plain loads, for structures whose layout was checked.
pub struct Direct(());

impl Direct {
    /// # Safety
    /// Whoever reads by this value reads only what stands still and has the layout that it takes it for.
    pub unsafe fn new() -> Direct {
        Direct(())
    }
}

impl Memory for Direct {
    #[inline(always)]
    fn read<const N: usize>(&self, address: usize) -> Option<[u8; N]> {
        if address < 4096 {
            return None;
        }
        // SAFETY: the maker of this value vouches for its reads, and bytes have no alignment.
        Some(unsafe { (address as *const [u8; N]).read_unaligned() })
    }
}

/// The kernel reads for us: a wrong address is an error of the call.
pub struct Checked;

impl Memory for Checked {
    fn read<const N: usize>(&self, address: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: N,
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: N,
        };
        // SAFETY: the local buffer has the length that is said; the kernel checks the other one.
        let copied = unsafe {
            libc::process_vm_readv(
                rustix::process::getpid().as_raw_nonzero().get(),
                &local,
                1,
                &remote,
                1,
                0,
            )
        };
        (usize::try_from(copied) == Ok(N)).then_some(bytes)
    }
}

/// False where the kernel, or a filter of system calls, does not read for us.
pub fn may_check() -> bool {
    let witness = 0x5eed_u32;
    Checked.read((&raw const witness) as usize) == Some(witness.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_address_is_no_crash() {
        assert!(may_check());
        assert_eq!(Checked.word(8), None);
        assert_eq!(Checked.word(usize::MAX - 64), None);
        // SAFETY: an address below the first page is never read.
        assert_eq!(unsafe { Direct::new() }.word(8), None);
    }
}
