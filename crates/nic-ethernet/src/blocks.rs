//! Blocks of receive buffers. The card takes a block from the ring for frames of one size, and fills the block from its
//! front. The driver returns a block when all frames of the block are free. Blocks of short frames stay open for long.
//! The order in which blocks return therefore differs from that in which the card took them.

use super::spec::ReceiveSpec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The blocks of a ring.
pub(super) struct Blocks {
    entries: u64,
    /// Places of the posted blocks, in the order in which the card takes them.
    posted: RefCell<VecDeque<u64>>,
    /// Places of free blocks that the driver has not posted yet.
    freed: RefCell<VecDeque<u64>>,
    /// Size of a block in bytes.
    bytes: u64,
    /// Sizes of buffers, the smallest first. A block has buffers of one size.
    sizes: Vec<u64>,
    /// Blocks taken from the ring so far.
    taken: Cell<u64>,
    /// For each size, the block that the card fills.
    open: RefCell<Vec<Option<Open>>>,
    seen: RefCell<Seen>,
}

/// A block that the card fills.
#[derive(Clone, Copy)]
struct Open {
    /// The block's number among all blocks that the card took.
    block: u64,
    /// The block's place in memory.
    place: u64,
    /// Number of used buffers.
    used: u64,
}

/// A buffer for a frame.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The number of the buffer's block.
    pub(super) block: u64,
    /// The buffer's offset from the ring's first buffer, in bytes.
    pub(super) offset: u64,
    /// The buffer's size in bytes.
    pub(super) size: u64,
}

/// Blocks with frames that the driver has seen, in the order in which the card took them.
#[derive(Default)]
struct Seen {
    /// The number of the first of these blocks.
    first: u64,
    states: VecDeque<State>,
    /// Number of these blocks that the driver has not freed.
    used: u64,
}

struct State {
    /// The block's place in memory.
    place: u64,
    /// Number of freed frames.
    freed: u64,
    /// Number of frames that the block has room for.
    room: u64,
    /// Whether the driver copies the block's frames.
    copies: bool,
}

impl Blocks {
    /// Returns the free blocks of a ring. Returns `None` if the ring's entries are single buffers.
    pub(super) fn new(spec: &ReceiveSpec) -> Option<Blocks> {
        let sizes: Vec<u64> =
            [spec.small, spec.medium, spec.buffer].into_iter().filter(|&size| size > 0).collect();
        (spec.block > 1).then(|| Blocks {
            entries: spec.entries,
            posted: RefCell::new((0..spec.entries).collect()),
            freed: RefCell::default(),
            bytes: spec.block * spec.buffer,
            taken: Cell::new(0),
            open: RefCell::new(vec![None; sizes.len()]),
            sizes,
            seen: RefCell::default(),
        })
    }

    /// Takes the smallest buffer with room for `bytes` bytes.
    pub(super) fn take(&self, bytes: u64) -> Option<Place> {
        let class = self.sizes.iter().position(|&size| size >= bytes)?;
        let (size, mut open) = (self.sizes[class], self.open.borrow_mut());
        let in_block = open[class].filter(|open| open.used < self.bytes / size);
        let Open { block, place, used } = match in_block {
            Some(open) => open,
            None => {
                let place = self.posted.borrow_mut().pop_front()?;
                Open { block: self.taken.replace(self.taken.get() + 1), place, used: 0 }
            }
        };
        open[class] = Some(Open { block, place, used: used + 1 });
        Some(Place { block, offset: place * self.bytes + used * size, size })
    }

    /// Posts the oldest `blocks` free blocks.
    pub(super) fn post(&self, blocks: u64) {
        self.posted.borrow_mut().extend(self.freed.borrow_mut().drain(..blocks as usize));
    }

    /// Records that the driver sees a frame in this buffer. Returns whether the driver copies the frame. The driver
    /// decides for the whole block when it sees the block's first frame. It copies if the blocks in use are at least
    /// `percent` percent of the ring. For buffers of the smallest of several sizes, it also copies from `small` percent
    /// on.
    pub(super) fn see(&self, frame: &Place, percent: u64, small: u64) -> bool {
        let &Place { block, offset, size } = frame;
        let mut seen = self.seen.borrow_mut();
        let is_small = self.sizes.len() > 1 && size == self.sizes[0];
        while seen.first + (seen.states.len() as u64) <= block {
            seen.used += 1;
            let beyond = |percent| seen.used * 100 >= self.entries * percent;
            let copies = beyond(percent) || is_small && beyond(small);
            let place = offset / self.bytes;
            seen.states.push_back(State { place, freed: 0, room: self.bytes / size, copies });
        }
        seen.states[(block - seen.first) as usize].copies
    }

    /// Frees a frame that the driver has seen. Returns whether the frame's block is free and must be posted.
    pub(super) fn free(&self, block: u64) -> bool {
        let mut seen = self.seen.borrow_mut();
        let at = (block - seen.first) as usize;
        seen.states[at].freed += 1;
        if seen.states[at].freed < seen.states[at].room {
            return false;
        }
        self.freed.borrow_mut().push_back(seen.states[at].place);
        seen.used -= 1;
        while seen.states.front().is_some_and(|state| state.freed == state.room) {
            seen.states.pop_front();
            seen.first += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of 8 KiB, for frames of three sizes.
    fn blocks(entries: u64) -> Blocks {
        Blocks {
            entries,
            posted: RefCell::new((0..entries).collect()),
            freed: RefCell::default(),
            bytes: 8192,
            sizes: vec![256, 1024, 2048],
            taken: Cell::new(0),
            open: RefCell::new(vec![None; 3]),
            seen: RefCell::default(),
        }
    }

    fn take(blocks: &Blocks, bytes: u64) -> Option<(u64, u64)> {
        blocks.take(bytes).map(|place| (place.block, place.offset))
    }

    #[test]
    fn a_block_has_frames_of_one_size() {
        let blocks = blocks(2);
        assert_eq!(take(&blocks, 60), Some((0, 0)));
        assert_eq!(take(&blocks, 257), Some((1, 8192)));
        assert_eq!(take(&blocks, 256), Some((0, 256)));
        assert_eq!(take(&blocks, 1024), Some((1, 8192 + 1024)));
        // No block is left for a third size.
        assert_eq!((take(&blocks, 1025), take(&blocks, 2049)), (None, None));
    }

    #[test]
    fn a_block_is_posted_when_all_its_buffers_were_used_and_freed() {
        let blocks = blocks(2);
        for n in 0..32 {
            let frame = blocks.take(60).unwrap();
            assert_eq!((frame.block, frame.offset), (0, 256 * n));
            assert!(!blocks.see(&frame, 100, 100));
        }
        assert_eq!(take(&blocks, 60).unwrap().0, 1);
        let freed: Vec<bool> = (0..32).map(|_| blocks.free(0)).collect();
        assert_eq!((freed.iter().filter(|&&last| last).count(), freed[31]), (1, true));
        assert_eq!(take(&blocks, 1025), None);
        blocks.post(1);
        assert_eq!(take(&blocks, 1025), Some((2, 0)));
    }

    #[test]
    fn a_block_that_stays_open_keeps_its_place() {
        let blocks = blocks(3);
        assert_eq!(take(&blocks, 60), Some((0, 0)));
        // Blocks of full frames go around the two open blocks of short frames.
        for block in 1..9 {
            for n in 0..4 {
                let frame = blocks.take(1500).unwrap();
                assert_eq!((frame.block, frame.offset), (block, 8192 * (2 - block % 2) + 2048 * n));
                blocks.see(&frame, 100, 100);
            }
            let freed: Vec<bool> = (0..4).map(|_| blocks.free(block)).collect();
            assert_eq!(freed, [false, false, false, true]);
            blocks.post(1);
        }
        assert_eq!(take(&blocks, 60), Some((0, 256)));
    }

    #[test]
    fn small_frames_are_copied_from_a_share_of_their_own_on() {
        let blocks = blocks(10);
        let see = |block, size| blocks.see(&Place { block, offset: 0, size }, 75, 40);
        // The fourth of ten blocks is 40 %.
        assert_eq!([0, 1, 2, 3].map(|block| see(block, 256)), [false, false, false, true]);
        // Full frames are copied from the eighth block on.
        assert_eq!([4, 5, 6, 7].map(|block| see(block, 2048)), [false, false, false, true]);
        // The decision for a block does not change.
        assert!(!see(0, 256));
    }
}
