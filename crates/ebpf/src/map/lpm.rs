//! Longest prefix match.

use super::hash::Index;
use super::kind::{Errno, check_update};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A prefix: its bits, and its bytes with the other bits clear.
type Prefix = (u32, Box<[u8]>);

/// Prefixes and their entries.
#[derive(Clone, Debug)]
pub(crate) struct Lpm {
    index: Index<Prefix>,
    /// Prefixes by their length.
    lengths: BTreeMap<u32, usize>,
    free: Vec<u32>,
    /// The keys as they were given, by entry: user space reads the bits behind a prefix back.
    keys: Vec<Box<[u8]>>,
    most: usize,
    /// Bits of the longest prefix.
    bits: u32,
}

/// The prefix length of a key, and its bytes.
fn parts(key: &[u8]) -> (u32, &[u8]) {
    let (length, bytes) = key.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    (u32::from_ne_bytes(*length), bytes)
}

fn masked(bytes: &[u8], bits: u32) -> Box<[u8]> {
    let mut bytes: Box<[u8]> = bytes.into();
    for (at, byte) in bytes.iter_mut().enumerate() {
        let kept = (i64::from(bits) - 8 * at as i64).clamp(0, 8);
        *byte &= !(0xffu16 >> kept) as u8;
    }
    bytes
}

impl Lpm {
    pub(crate) fn new(most: u32, key_size: u32) -> Lpm {
        Lpm {
            index: Index::default(),
            lengths: BTreeMap::new(),
            free: Vec::new(),
            keys: Vec::new(),
            most: most as usize,
            bits: 8 * key_size.saturating_sub(4),
        }
    }

    pub(crate) fn entries(&self) -> usize {
        self.keys.len()
    }

    /// The entry of the longest prefix of a key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        let (length, bytes) = parts(key);
        if length > self.bits {
            return None;
        }
        let lengths = self.lengths.range(..=length).rev();
        lengths.filter_map(|(&length, _)| self.index.get(&(length, masked(bytes, length))).copied()).next()
    }

    /// A new entry for a prefix, present or not.
    pub(crate) fn update(&mut self, key: &[u8], flags: u64) -> Result<u32, Errno> {
        let (length, bytes) = parts(key);
        if flags > 2 || length > self.bits {
            return Err(Errno::EINVAL);
        }
        let prefix = (length, masked(bytes, length));
        let old = self.index.get(&prefix).copied();
        check_update(flags, old.is_some())?;
        if old.is_none() && self.index.len() >= self.most {
            return Err(Errno::ENOSPC);
        }
        let entry = self.free.pop().unwrap_or(self.keys.len() as u32);
        match self.keys.get_mut(entry as usize) {
            Some(own) => *own = key.into(),
            None => self.keys.push(key.into()),
        }
        self.index.insert(prefix, entry);
        match old {
            Some(old) => self.free.push(old),
            None => *self.lengths.entry(length).or_default() += 1,
        }
        Ok(entry)
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), Errno> {
        let (length, bytes) = parts(key);
        if length > self.bits {
            return Err(Errno::EINVAL);
        }
        let entry = self.index.remove(&(length, masked(bytes, length))).ok_or(Errno::ENOENT)?;
        self.free.push(entry);
        if let Some(count) = self.lengths.get_mut(&length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length);
            }
        }
        Ok(())
    }

    /// Keys and entries in Linux's order: longer prefixes before those that contain them.
    pub(crate) fn iter(&self) -> Vec<(Vec<u8>, u32)> {
        let mut all: Vec<_> = self.index.iter().collect();
        all.sort_by(|(a, _), (b, _)| order(a, b));
        all.into_iter().map(|(_, &entry)| (self.keys[entry as usize].to_vec(), entry)).collect()
    }
}

fn order(a: &Prefix, b: &Prefix) -> Ordering {
    let common = a.0.min(b.0);
    masked(&a.1, common).cmp(&masked(&b.1, common)).then(b.0.cmp(&a.0))
}
