//! Memory of a map's values: slots of one size, with addresses at distances of a power of two.

use crate::address::LARGEST;
use std::ops::Range;

/// Slots of values.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    size: usize,
    /// Bytes from one slot to the next.
    stride: usize,
    /// The address of slot `n` is `n << shift`.
    shift: u32,
    bytes: Vec<u8>,
}

impl Values {
    /// No slots yet.
    pub(crate) fn new(size: u32) -> Values {
        let stride = (size as usize).next_multiple_of(8).max(8);
        Values {
            size: size as usize,
            stride,
            shift: stride.next_power_of_two().trailing_zeros(),
            bytes: Vec::new(),
        }
    }

    /// Bytes of memory and of addresses that slots take: more than a machine has are refused.
    pub(crate) fn need(&self, slots: u64) -> (u64, bool) {
        let memory = slots.saturating_mul(self.stride as u64);
        let fits = slots.checked_mul(1 << self.shift).is_some_and(|addresses| addresses <= LARGEST);
        (memory, fits)
    }

    pub(crate) fn grow(&mut self, slots: usize) {
        if slots * self.stride > self.bytes.len() {
            self.bytes.resize(slots * self.stride, 0);
        }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The address of a slot, from the region's first byte.
    pub(crate) fn address(&self, slot: u32) -> u32 {
        slot << self.shift
    }

    /// The bytes at an address, where they are inside one value.
    #[inline(always)]
    pub(crate) fn range(&self, address: u32, length: usize) -> Option<Range<usize>> {
        let slot = (address >> self.shift) as usize;
        let inner = (address & ((1 << self.shift) - 1)) as usize;
        let begin = slot * self.stride + inner;
        (inner.checked_add(length)? <= self.size && begin + length <= self.bytes.len())
            .then(|| begin..begin + length)
    }

    #[inline(always)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn get(&self, slot: u32) -> &[u8] {
        let begin = slot as usize * self.stride;
        &self.bytes[begin..begin + self.size]
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut [u8] {
        let begin = slot as usize * self.stride;
        &mut self.bytes[begin..begin + self.size]
    }
}
