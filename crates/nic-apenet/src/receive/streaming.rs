//! Streaming buffers: memory that a process gives its card for messages without a destination address.

use crate::Card;
use crate::error::Refusal;
use std::collections::{BTreeMap, VecDeque};

/// The unused streaming buffers of a process. They do not overlap.
#[derive(Default)]
pub(crate) struct Unused {
    /// First addresses of the buffers, in the order of use.
    order: VecDeque<u64>,
    /// Maps the first address of a buffer to its size in bytes.
    lengths: BTreeMap<u64, u64>,
}

impl Unused {
    pub(crate) fn len(&self) -> u64 {
        self.order.len() as u64
    }

    /// Adds a buffer behind the other buffers.
    pub(crate) fn add(&mut self, address: u64, bytes: u64) {
        self.order.push_back(address);
        self.lengths.insert(address, bytes);
    }

    /// Returns the first address and the size of a buffer that overlaps these bytes, if any. `bytes` is at least 1.
    pub(crate) fn touching(&self, address: u64, bytes: u64) -> Option<(u64, u64)> {
        let before = self.lengths.range(..=address.saturating_add(bytes - 1)).next_back();
        before.map(|(&buffer, &len)| (buffer, len)).filter(|(buffer, len)| buffer + len > address)
    }

    fn first(&self) -> Option<(u64, u64)> {
        let first = self.order.front()?;
        Some((*first, self.lengths[first]))
    }

    fn remove_first(&mut self) {
        if let Some(first) = self.order.pop_front() {
            self.lengths.remove(&first);
        }
    }

    /// Keeps the buffers for which `holds` returns true. The arguments of `holds` are address and size.
    fn keep(&mut self, holds: impl Fn(u64, u64) -> bool) {
        self.lengths.retain(|&address, bytes| holds(address, *bytes));
        self.order.retain(|address| self.lengths.contains_key(address));
    }
}

/// Reserved streaming buffers of a process, which are not allocated before their use.
#[derive(Clone, Copy)]
pub(crate) struct Reserve {
    left: u64,
    /// Number of buffers allocated together.
    chunk: u64,
    bytes: u64,
}

impl Card {
    /// Reserves `left` streaming buffers of `bytes` bytes for a process, as part of set-up. The buffers are allocated
    /// at their first use, `chunk` buffers at a time.
    pub(crate) fn reserve_streaming(&self, process: u32, left: u64, chunk: u64, bytes: u64) {
        self.receive.reserves.borrow_mut().insert(process, Reserve { left, chunk, bytes });
    }

    /// Allocates the next buffers of a process's reserve. Returns `None` if the reserve is empty, the host has no
    /// memory, or the card has no room for the buffers.
    fn make_streaming(&self, process: u32) -> Option<()> {
        let mut reserves = self.receive.reserves.borrow_mut();
        let Reserve { left, chunk, bytes } = reserves.get_mut(&process).filter(|reserve| reserve.left > 0)?;
        let count = (*chunk).min(*left);
        let memory = self.dma.memory().allocate(count * *bytes).ok()?;
        self.set_up_region(process, memory.address(), memory.len()).ok()?;
        *left -= count;
        let mut streaming = self.receive.streaming.borrow_mut();
        let unused = streaming.entry(process).or_default();
        (0..count).for_each(|number| unused.add(memory.address() + number * *bytes, *bytes));
        Some(())
    }

    /// Removes the unused streaming buffers that lie in no region after a deregistration.
    pub(crate) fn forget_streaming(&self, process: u32) {
        if let Some(unused) = self.receive.streaming.borrow_mut().get_mut(&process) {
            unused.keep(|address, bytes| self.translation.regions.hold(process, address, bytes).is_ok());
        }
    }

    /// Takes the first unused streaming buffer of a process for a message of `bytes` bytes. Returns the buffer's
    /// address.
    pub(crate) fn streaming_buffer(&self, process: u32, bytes: u64) -> Result<u64, Refusal> {
        if self.receive.streaming.borrow().get(&process).is_none_or(|unused| unused.len() == 0) {
            self.make_streaming(process);
        }
        let mut streaming = self.receive.streaming.borrow_mut();
        let unused = streaming.get_mut(&process).ok_or(Refusal::NoBuffer)?;
        let (address, room) = unused.first().ok_or(Refusal::NoBuffer)?;
        if bytes > room {
            return Err(Refusal::TooLong);
        }
        unused.remove_first();
        Ok(address)
    }
}
