//! Maps as user space sees them: entries with the values of all CPUs.

use super::kind::{Errno, Flags, check_update};
use super::{Index, Map, MapKind};

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key; empty for a map without keys.
    pub key: Vec<u8>,
    /// The value, or one for each CPU.
    pub values: Vec<Vec<u8>>,
}

/// The longest queue of a cpumap's entry.
const CPU_QUEUE: u32 = 16_384;

impl Map {
    /// All entries, in an order that repeats. Records of a ring buffer and values of a bloom filter are none.
    pub fn items(&self) -> Vec<Item> {
        let item = |key: &[u8], entry: u32| {
            let slots = (0..self.copies()).map(|copy| entry * self.copies() + copy);
            Item { key: key.to_vec(), values: slots.map(|slot| self.shown(slot)).collect() }
        };
        match &self.table {
            Index::Array => (0..self.definition.max_entries).map(|at| item(&at.to_ne_bytes(), at)).collect(),
            Index::Slots(filled) => {
                let present = (0..filled.len() as u32).filter(|&at| filled[at as usize]);
                present.map(|at| item(&at.to_ne_bytes(), at)).collect()
            }
            Index::Hash(table) => table.iter().map(|(key, entry)| item(key, entry)).collect(),
            Index::Lru(table, _) => table.iter().map(|(key, entry)| item(key, entry)).collect(),
            Index::Lpm(lpm) => lpm.iter().iter().map(|(key, entry)| item(key, *entry)).collect(),
            Index::Queue(queue) => {
                let values = queue.values.iter();
                values.map(|value| Item { key: Vec::new(), values: vec![value.to_vec()] }).collect()
            }
            Index::Bloom(_) | Index::Ring(_) => Vec::new(),
        }
    }

    /// A value as user space sees it: without its lock.
    fn shown(&self, slot: u32) -> Vec<u8> {
        let mut value = self.values.get(slot).to_vec();
        if let Some(at) = self.lock {
            value[at..at + 4].fill(0);
        }
        value
    }

    /// The bits of a bloom filter.
    pub fn bits(&self) -> Option<Vec<u8>> {
        match &self.table {
            Index::Bloom(bloom) => Some(bloom.bytes()),
            _ => None,
        }
    }

    /// The values of a key.
    pub fn get(&self, key: &[u8]) -> Option<Vec<Vec<u8>>> {
        let entry = match &self.table {
            Index::Lpm(lpm) => lpm.find(key)?,
            _ => self.entry(key)?,
        };
        Some((0..self.copies()).map(|copy| self.shown(entry * self.copies() + copy)).collect())
    }

    /// Changes an entry. A map without keys gets one more value.
    ///
    /// # Errors
    /// The error number of Linux. Sizes that are not the map's are `EINVAL`.
    pub fn set(&mut self, key: &[u8], values: &[Vec<u8>], flags: u64) -> Result<(), Errno> {
        let sizes = values.iter().all(|value| value.len() == self.values.size());
        if key.len() != self.definition.key_size as usize || values.len() != self.copies() as usize || !sizes
        {
            return Err(Errno::EINVAL);
        }
        match &mut self.table {
            Index::Queue(queue) => return queue.push(&values[0], flags),
            Index::Bloom(bloom) => return bloom.push(&values[0], flags),
            Index::Ring(_) => return Err(Errno::ENOTSUPP),
            Index::Slots(_) => return self.set_slot(key, &values[0], flags),
            _ => {}
        }
        let slot = match self.kind {
            MapKind::DeviceHash if values[0].iter().take(4).all(|&byte| byte == 0) => {
                return Err(Errno::EINVAL);
            }
            MapKind::DeviceHash => self.prepare_device(key, flags)?,
            _ => self.prepare(key, flags, 0)?.0,
        };
        for (copy, value) in values.iter().enumerate() {
            self.store(slot + copy as u32, value);
        }
        Ok(())
    }

    /// A hash of devices inserts a key that should be present.
    fn prepare_device(&mut self, key: &[u8], flags: u64) -> Result<u32, Errno> {
        if flags > Flags::PRESENT {
            return Err(Errno::EINVAL);
        }
        let present = self.entry(key).is_some();
        let flags = if flags == Flags::PRESENT { 0 } else { flags };
        check_update(flags, present)?;
        Ok(self.prepare(key, flags, 0)?.0)
    }

    fn set_slot(&mut self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags > Flags::PRESENT {
            return Err(Errno::EINVAL);
        }
        let number = key.first_chunk::<4>().map_or(u32::MAX, |key| u32::from_ne_bytes(*key));
        let Index::Slots(filled) = &mut self.table else { return Err(Errno::EINVAL) };
        let place = filled.get_mut(number as usize).ok_or(Errno::E2BIG)?;
        if flags == Flags::ABSENT {
            return Err(Errno::EEXIST);
        }
        let word = value.first_chunk::<4>().map_or(0, |word| u32::from_ne_bytes(*word));
        if self.kind == MapKind::Cpus && word > CPU_QUEUE {
            return Err(Errno::EOVERFLOW);
        }
        let empties = matches!(self.kind, MapKind::Devices | MapKind::Cpus)
            && value.first_chunk::<4>().is_none_or(|word| *word == [0; 4]);
        *place = !empties;
        self.values.get_mut(number).copy_from_slice(value);
        Ok(())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// The error number of Linux.
    pub fn remove(&mut self, key: &[u8]) -> Result<(), Errno> {
        if key.len() != self.definition.key_size as usize {
            return Err(Errno::EINVAL);
        }
        let number = key.first_chunk::<4>().map_or(u32::MAX, |key| u32::from_ne_bytes(*key));
        match &mut self.table {
            Index::Slots(filled) => match filled.get_mut(number as usize) {
                Some(place) => {
                    *place = false;
                    Ok(())
                }
                None => Err(Errno::EINVAL),
            },
            Index::Hash(table) => table.remove(key).map(|_| ()),
            _ => self.delete(key).unwrap_or(Err(Errno::ENOTSUPP)),
        }
    }

    /// Takes the first value of a queue or the last of a stack.
    ///
    /// # Errors
    /// `ENOENT` where it is empty, `ENOTSUPP` for another type.
    pub fn pop(&mut self) -> Result<Vec<u8>, Errno> {
        self.queue().ok_or(Errno::ENOTSUPP)?.pop().map(|value| value.to_vec())
    }

    /// Whether a ring buffer has a submitted record that a reader can take.
    pub fn has_records(&mut self) -> bool {
        self.ring().is_some_and(|ring| ring.has_submitted())
    }

    /// Takes the records of a ring buffer.
    pub fn records(&mut self) -> Vec<Vec<u8>> {
        self.ring().map(|ring| ring.take()).unwrap_or_default()
    }

    /// Makes the map `number` the value of a key in an array or a hash of maps.
    ///
    /// # Errors
    /// The error number of Linux.
    pub fn set_map(&mut self, key: &[u8], number: u32) -> Result<(), Errno> {
        self.set(key, &[number.to_ne_bytes().to_vec()], 0)
    }
}
