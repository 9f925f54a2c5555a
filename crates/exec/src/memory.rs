//! Reads and writes of the simulator in the memory of a process.

use std::io;

/// Up to this length, memory is allocated before the address of the last byte is checked.
const UNCHECKED: u64 = 1 << 16;

/// Maximum bytes in one system call.
const AT_ONCE: usize = 1 << 30;

fn parts(own: *mut u8, remote: u64, bytes: usize) -> (libc::iovec, libc::iovec) {
    let own = libc::iovec { iov_base: own.cast(), iov_len: bytes };
    (own, libc::iovec { iov_base: remote as usize as *mut libc::c_void, iov_len: bytes })
}

/// Repeats a system call until all bytes are transferred, or a call fails.
fn all(bytes: usize, mut some: impl FnMut(usize, usize) -> isize) -> io::Result<()> {
    let mut done = 0;
    while done < bytes {
        let more = some(done, (bytes - done).min(AT_ONCE));
        match usize::try_from(more) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(more) => done += more,
            Err(_) => return Err(io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// Reads from the memory of a process, from an address on.
pub(crate) fn read(pid: u32, address: u64, into: &mut [u8]) -> io::Result<()> {
    all(into.len(), |done, bytes| {
        let (own, remote) = parts(into[done..].as_mut_ptr(), address.wrapping_add(done as u64), bytes);
        // SAFETY: the kernel writes into the slice alone, and checks the other address.
        unsafe { libc::process_vm_readv(pid as libc::pid_t, &raw const own, 1, &raw const remote, 1, 0) }
    })
}

/// Returns bytes from the memory of a process, from an address on, after `zeros` zero bytes.
pub(crate) fn bytes(pid: u32, zeros: usize, address: u64, bytes: u64) -> io::Result<Vec<u8>> {
    // A wrong length must not allocate much memory.
    if bytes > UNCHECKED {
        read(pid, address.saturating_add(bytes - 1), &mut [0])?;
    }
    let (mut all, mut done) = (vec![0; zeros], 0);
    while done < bytes {
        let some = (bytes - done).min(AT_ONCE as u64);
        all.try_reserve_exact(some as usize).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let from = all.len();
        all.resize(from + some as usize, 0);
        read(pid, address + done, &mut all[from..])?;
        done += some;
    }
    Ok(all)
}

/// Writes into the memory of a process, from an address on.
pub(crate) fn write(pid: u32, address: u64, from: &[u8]) -> io::Result<()> {
    all(from.len(), |done, bytes| {
        let own = from[done..].as_ptr().cast_mut();
        let (own, remote) = parts(own, address.wrapping_add(done as u64), bytes);
        // SAFETY: the kernel reads the slice, and checks the other address.
        unsafe { libc::process_vm_writev(pid as libc::pid_t, &raw const own, 1, &raw const remote, 1, 0) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_written_by_address() {
        let own = std::process::id();
        let (mut there, mut here) = ([1_u8, 2, 3, 4], [0; 3]);
        let address = there.as_mut_ptr() as u64;
        read(own, address + 1, &mut here).unwrap();
        assert_eq!(here, [2, 3, 4]);
        write(own, address, &[9, 8]).unwrap();
        assert_eq!(there, [9, 8, 3, 4]);
        assert_eq!(read(own, 8, &mut here).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        read(own, 8, &mut []).unwrap();
        assert_eq!(bytes(own, 2, address, 4).unwrap(), [0, 0, 9, 8, 3, 4]);
        for many in [1 << 40, 1 << 47, u64::MAX] {
            assert!(bytes(own, 0, address, many).is_err());
        }
    }
}
