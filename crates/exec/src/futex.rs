//! Waits for words of shared memory.

use std::io;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits while the word has `value`, until another thread wakes the word or `limit` has passed. Returns whether the limit has
/// passed.
pub(crate) fn wait(word: &AtomicU32, value: u32, limit: Option<Duration>) -> bool {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the limit live as long as the call.
    let outcome = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, limit) };
    outcome != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
}

/// Wakes all waiters of the word.
pub(crate) fn wake(word: &AtomicU32) {
    // SAFETY: the word is alive; waking reads nothing of it.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
}
