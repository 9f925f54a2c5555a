//! The bytes of an allocation of host memory.

use memmap2::MmapMut;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Allocations of at least this many bytes are pages from the operating system. The allocator reuses freed memory, and
/// must then write zeros to all bytes of an allocation. This is slow for large rings that a run never touches.
const MAPPED: usize = 64 << 10;

/// Bytes of host memory that never move or shrink. The owner may read the bytes while no simulation runs. Every access
/// copies bytes, so no reference points into memory that another party writes.
pub struct HostBytes {
    start: NonNull<u8>,
    len: usize,
    /// The pages of a large allocation. All accesses to its bytes use `start`.
    pages: Option<MmapMut>,
}

// SAFETY: the memory is plain bytes owned by this value, and every access copies through raw pointers. Accesses never
// overlap in time: the simulation and the program take turns, and pass the turn through channels.
unsafe impl Send for HostBytes {}
// SAFETY: as above. A shared `HostBytes` only copies bytes in and out.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Returns `len` zero bytes, or `None` if the machine has no memory for them.
    pub(crate) fn new(len: usize) -> Option<HostBytes> {
        if len == 0 {
            return Some(HostBytes { start: NonNull::dangling(), len, pages: None });
        }
        if len >= MAPPED {
            let mut pages = MmapMut::map_anon(len).ok()?;
            return Some(HostBytes { start: NonNull::new(pages.as_mut_ptr())?, len, pages: Some(pages) });
        }
        let layout = Self::layout(len)?;
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        Some(HostBytes { start: NonNull::new(start)?, len, pages: None })
    }

    fn layout(len: usize) -> Option<Layout> {
        // This alignment suits any number. Alignment to a page would waste most of a page for each small allocation.
        Layout::from_size_align(len, 16).ok()
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the bytes, for export. It is valid as long as this value lives.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies the bytes from `offset` on to `to`.
    ///
    /// # Panics
    /// If the range is not within the bytes.
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        assert!(offset.checked_add(to.len()).is_some_and(|end| end <= self.len), "read outside host memory");
        // SAFETY: the range was just checked. `to` is a separate Rust slice, so the source and the destination do not
        // overlap.
        unsafe { self.start.as_ptr().add(offset).copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Panics
    /// If the range is not within the bytes.
    pub fn write(&self, offset: usize, from: &[u8]) {
        assert!(
            offset.checked_add(from.len()).is_some_and(|end| end <= self.len),
            "write outside host memory"
        );
        // SAFETY: the range was just checked. `from` is a separate Rust slice, so the source and the destination do not
        // overlap.
        unsafe { self.start.as_ptr().add(offset).copy_from_nonoverlapping(from.as_ptr(), from.len()) }
    }
}

impl Drop for HostBytes {
    fn drop(&mut self) {
        if self.len > 0
            && self.pages.is_none()
            && let Some(layout) = Self::layout(self.len)
        {
            // SAFETY: `new` allocated the memory with this same layout, and it is freed only here.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({} B)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_begin_as_zeros() {
        for len in [0, 1, MAPPED - 1, MAPPED, 3 * MAPPED + 1] {
            let bytes = HostBytes::new(len).unwrap();
            let mut read = vec![1; len];
            bytes.read(0, &mut read);
            assert!(
                read.iter().all(|byte| *byte == 0) && bytes.len() == len && bytes.is_empty() == (len == 0)
            );
            bytes.write(len.saturating_sub(1), &vec![7; len.min(1)]);
        }
    }

    /// Returns the number of pages of `bytes` that are backed by memory of the machine.
    #[cfg(target_os = "linux")]
    fn backed(bytes: &HostBytes) -> usize {
        use std::os::unix::fs::FileExt;
        const PAGE: usize = 4096;
        let table = std::fs::File::open("/proc/self/pagemap").unwrap();
        let mut entries = vec![0; 8 * (bytes.len() / PAGE)];
        table.read_exact_at(&mut entries, (8 * (bytes.as_ptr().addr() / PAGE)) as u64).unwrap();
        entries.chunks_exact(8).filter(|entry| entry[7] & 0xc0 != 0).count()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn large_memory_is_backed_on_first_touch_after_earlier_memory_is_freed() {
        const LEN: usize = 8 << 20;
        for _ in 0..3 {
            let bytes = HostBytes::new(LEN).unwrap();
            assert!(backed(&bytes) <= 1, "{} pages are backed before their first touch", backed(&bytes));
            bytes.write(0, &vec![7; LEN]);
            assert_eq!(backed(&bytes), LEN / 4096);
        }
    }
}
