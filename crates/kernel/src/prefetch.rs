//! Prefetches. The queue knows the next few events in advance, so the cache misses of these events can overlap.

/// Size of a cache line in bytes.
const LINE: usize = 64;

/// Fetches a value into the CPU caches without waiting for it. A prefetch affects only speed.
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast::<u8>(), size_of_val(value));
}

/// A value that future events will need: its address and its size. A prefetch of a value that no longer exists does no
/// harm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needed {
    start: usize,
    bytes: u32,
}

impl Needed {
    /// No value.
    pub const NOTHING: Needed = Needed { start: 0, bytes: 0 };

    /// Returns a reference to this value at its present address.
    pub fn of<T: ?Sized>(value: &T) -> Needed {
        let bytes = u32::try_from(size_of_val(value)).unwrap_or(u32::MAX);
        Needed { start: std::ptr::from_ref(value).addr(), bytes }
    }

    /// Fetches the value, like [`prefetch`].
    pub(crate) fn prefetch(self) {
        if self.bytes > 0 {
            prefetch_bytes(std::ptr::without_provenance(self.start), (self.bytes as usize).min(MOST));
        }
    }
}

/// Maximum prefetched size of a needed value, in bytes.
const MOST: usize = 512;
/// Maximum number of values that are prefetched for a node.
const KEPT: usize = 12;

/// The values that most events of a node need. They are prefetched before these events.
#[derive(Default)]
pub(crate) struct Near([Needed; KEPT]);

impl Near {
    /// Adds a value, if there is room.
    pub(crate) fn add(&mut self, value: Needed) {
        if let Some(free) = self.0.iter_mut().find(|kept| kept.bytes == 0) {
            *free = value;
        }
    }

    pub(crate) fn prefetch(&self) {
        self.0.iter().take_while(|kept| kept.bytes > 0).for_each(|kept| kept.prefetch());
    }
}

/// Like [`prefetch`], for a number of bytes.
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    // Begins at the start of the first cache line. Otherwise the loop could miss the last cache line.
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
