//! Streaming buffers: memory that a process has given its card for messages that name no address.

use crate::apenet::Card;
use crate::apenet::error::Refusal;
use crate::apenet::translation::Registered;
use std::collections::VecDeque;

/// Streaming buffers of a process that have been registered but not used, and so not made.
#[derive(Clone, Copy)]
pub(in crate::apenet) struct Reserve {
    left: u64,
    /// How many are made at a time.
    chunk: u64,
    bytes: u64,
}

impl Card {
    /// Gives a process so many streaming buffers, each of so many bytes: part of set-up. Their memory is made when they are
    /// used first, so many at a time.
    pub(in crate::apenet) fn reserve_streaming(&self, process: u32, left: u64, chunk: u64, bytes: u64) {
        self.receive.reserves.borrow_mut().insert(process, Reserve { left, chunk, bytes });
    }

    /// Makes buffers of a process's reserve, as far as the host has memory.
    fn make_streaming(&self, process: u32) -> Option<()> {
        let mut reserves = self.receive.reserves.borrow_mut();
        let Reserve { left, chunk, bytes } = reserves.get_mut(&process).filter(|reserve| reserve.left > 0)?;
        let count = (*chunk).min(*left);
        let memory = self.dma.memory().allocate(count * *bytes).ok()?;
        self.set_up_region(process, memory.address(), memory.len()).ok()?;
        *left -= count;
        let buffers = (0..count).map(|number| (memory.address() + number * *bytes, *bytes));
        self.receive.streaming.borrow_mut().entry(process).or_default().extend(buffers);
        Some(())
    }

    /// Forgets the unused streaming buffers of a region that is being deregistered.
    pub(in crate::apenet) fn forget_streaming(&self, process: u32, region: &Registered) {
        let end = region.address + region.bytes;
        if let Some(buffers) = self.receive.streaming.borrow_mut().get_mut(&process) {
            buffers.retain(|(address, _)| !(region.address..end).contains(address));
        }
    }

    /// The first unused streaming buffer of a process.
    pub(in crate::apenet) fn streaming_buffer(&self, process: u32, bytes: u64) -> Result<u64, Refusal> {
        if self.receive.streaming.borrow().get(&process).is_none_or(VecDeque::is_empty) {
            self.make_streaming(process);
        }
        let mut streaming = self.receive.streaming.borrow_mut();
        let buffers = streaming.get_mut(&process).ok_or(Refusal::NoBuffer)?;
        let &(address, room) = buffers.front().ok_or(Refusal::NoBuffer)?;
        if bytes > room {
            return Err(Refusal::TooLong);
        }
        buffers.pop_front();
        Ok(address)
    }
}
