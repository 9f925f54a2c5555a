//! Prefetching. The next events are known some events ahead, so the cache misses of their memory can overlap.

/// Lines of memory that the processor fetches at once.
const LINE: usize = 64;

/// Fetches a value into the processor's caches, without waiting for it. It affects only speed.
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
}

/// The same for so many bytes.
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    // From the start of its first line, or the last one would be left out.
    let before = start.addr() % LINE;
    for offset in (0..before + bytes).step_by(LINE) {
        fetch(start.wrapping_sub(before).wrapping_add(offset));
    }
}

#[cfg(target_arch = "x86_64")]
fn fetch(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint; it reads nothing, does not fault whatever the address, and every x86-64 processor has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch(_: *const u8) {}
