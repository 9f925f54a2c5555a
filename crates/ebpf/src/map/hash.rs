//! A table from keys to numbered entries, as Linux's preallocated hash: a changed key moves to a spare entry.

use super::kind::Errno;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// A hash without a random key, so that runs repeat.
pub(crate) type Index<K> = HashMap<K, u32, BuildHasherDefault<DefaultHasher>>;

/// Keys and their entries.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    index: Index<Box<[u8]>>,
    keys: Vec<Option<Box<[u8]>>>,
    free: Vec<u32>,
    most: usize,
    /// The entry that the next change of a present key takes, for each CPU.
    spare: Vec<u32>,
}

impl Table {
    pub(crate) fn new(most: u32, cpus: u32) -> Table {
        Table {
            index: Index::default(),
            keys: vec![None; cpus as usize],
            free: Vec::new(),
            most: most as usize,
            spare: (0..cpus).collect(),
        }
    }

    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.index.get(key).copied()
    }

    /// Entries that have been in use, with spare ones.
    pub(crate) fn entries(&self) -> usize {
        self.keys.len()
    }

    /// A new entry for an absent key.
    pub(crate) fn insert(&mut self, key: &[u8]) -> Result<u32, Errno> {
        if self.index.len() >= self.most {
            return Err(Errno::E2BIG);
        }
        let entry = self.free.pop().unwrap_or(self.keys.len() as u32);
        if entry as usize == self.keys.len() {
            self.keys.push(None);
        }
        self.place(key, entry);
        Ok(entry)
    }

    /// Another entry for a present key: pointers to the old one keep their bytes.
    pub(crate) fn replace(&mut self, key: &[u8], cpu: u32) -> Option<u32> {
        let old = self.find(key)?;
        let spare = self.spare.get_mut(cpu as usize)?;
        let new = std::mem::replace(spare, old);
        self.keys[old as usize] = None;
        self.place(key, new);
        Some(new)
    }

    fn place(&mut self, key: &[u8], entry: u32) {
        self.keys[entry as usize] = Some(key.into());
        self.index.insert(key.into(), entry);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<u32, Errno> {
        let entry = self.index.remove(key).ok_or(Errno::ENOENT)?;
        self.keys[entry as usize] = None;
        self.free.push(entry);
        Ok(entry)
    }

    /// Keys and entries, in the order of entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.keys.iter().enumerate().filter_map(|(entry, key)| Some((key.as_deref()?, entry as u32)))
    }
}
