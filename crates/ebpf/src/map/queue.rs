//! Queues, stacks and bloom filters: maps without keys.

use super::kind::{Errno, Flags};
use std::collections::VecDeque;

/// A queue or a stack.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) values: VecDeque<Box<[u8]>>,
    most: usize,
    stack: bool,
}

impl Queue {
    pub(crate) fn new(most: u32, stack: bool) -> Queue {
        Queue { values: VecDeque::new(), most: most as usize, stack }
    }

    pub(crate) fn push(&mut self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags & Flags::ABSENT != 0 || flags > Flags::PRESENT {
            return Err(Errno::EINVAL);
        }
        if self.values.len() >= self.most {
            if flags != Flags::PRESENT {
                return Err(Errno::E2BIG);
            }
            self.values.pop_front();
        }
        self.values.push_back(value.into());
        Ok(())
    }

    pub(crate) fn peek(&self) -> Result<&[u8], Errno> {
        let value = if self.stack { self.values.back() } else { self.values.front() };
        value.map(|value| &**value).ok_or(Errno::ENOENT)
    }

    pub(crate) fn pop(&mut self) -> Result<Box<[u8]>, Errno> {
        let value = if self.stack { self.values.pop_back() } else { self.values.pop_front() };
        value.ok_or(Errno::ENOENT)
    }
}

/// A bloom filter with Linux's hash and seed 0.
#[derive(Clone, Debug)]
pub(crate) struct Bloom {
    bits: Vec<u64>,
    mask: u32,
    hashes: u32,
}

impl Bloom {
    /// The bits of a filter for `entries` values.
    pub(crate) fn bits(entries: u32, hashes: u32) -> u64 {
        // The optimum is entries times hashes over the logarithm of 2, as 7/5.
        let bits = u64::from(entries) * u64::from(hashes) / 5 * 7;
        bits.max(64).next_power_of_two()
    }

    pub(crate) fn new(entries: u32, hashes: u32) -> Bloom {
        let bits = Bloom::bits(entries, hashes);
        Bloom { bits: vec![0; (bits / 64) as usize], mask: (bits - 1) as u32, hashes }
    }

    /// The bits, the first one lowest.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bits.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Words and bits of a value.
    fn places(&self, value: &[u8]) -> Vec<(usize, u64)> {
        let places = (0..self.hashes).map(|seed| jhash(value, seed) & self.mask);
        places.map(|place| (place as usize / 64, 1 << (place % 64))).collect()
    }

    pub(crate) fn push(&mut self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        for (word, bit) in self.places(value) {
            self.bits[word] |= bit;
        }
        Ok(())
    }

    pub(crate) fn peek(&self, value: &[u8]) -> Result<(), Errno> {
        let all = self.places(value).into_iter().all(|(word, bit)| self.bits[word] & bit != 0);
        if all { Ok(()) } else { Err(Errno::ENOENT) }
    }
}

const GOLDEN: u32 = 0xdead_beef;

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for turns in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turns.0);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(turns.1);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(turns.2);
        b = b.wrapping_add(a);
    }
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// Jenkins's hash as Linux computes it. Of whole words, its two forms give the same.
fn jhash(value: &[u8], seed: u32) -> u32 {
    let mut state = [GOLDEN.wrapping_add(value.len() as u32).wrapping_add(seed); 3];
    let mut rest = value;
    while rest.len() > 12 {
        let (block, behind) = rest.split_at(12);
        state = mix(added(state, block));
        rest = behind;
    }
    if rest.is_empty() {
        return state[2];
    }
    finish(added(state, rest))
}

fn added(mut state: [u32; 3], bytes: &[u8]) -> [u32; 3] {
    for (at, &byte) in bytes.iter().enumerate() {
        state[at / 4] = state[at / 4].wrapping_add(u32::from(byte) << (8 * (at % 4)));
    }
    state
}
