//! Maps with Linux's semantics and error numbers, for programs and for user space.

mod flags;
mod hash;
mod kind;
mod lpm;
mod lru;
mod queue;
mod ring;
mod user;
mod values;

pub use kind::{Errno, Flags, MapKind};
pub use user::Item;

use crate::error::ObjectError;
use crate::object::MapDefinition;
use hash::Table;
use kind::check_update;
use lpm::Lpm;
use lru::Lru;
use queue::{Bloom, Queue};
use ring::Ring;
use values::Values;

/// A map.
#[derive(Clone, Debug)]
pub struct Map {
    /// The definition that it was made from.
    pub definition: MapDefinition,
    /// The type.
    pub kind: MapKind,
    cpus: u32,
    values: Values,
    table: Index,
    /// Bytes of the lock in a value, which updates leave alone.
    lock: Option<usize>,
    /// Bytes that a full map takes.
    reserved: u64,
}

/// The way from keys to entries.
#[derive(Clone, Debug)]
enum Index {
    /// Numbers, all present.
    Array,
    /// Keys in a hash.
    Hash(Table),
    /// Keys in a hash that evicts.
    Lru(Evicting, Lru),
    /// Prefixes.
    Lpm(Lpm),
    /// Numbers, present where they are filled: devices, CPUs, sockets, programs, maps, perf events.
    Slots(Vec<bool>),
    /// No keys.
    Queue(Queue),
    Bloom(Bloom),
    Ring(Ring),
}

/// The keys of an evicting hash, by node.
#[derive(Clone, Debug)]
struct Evicting {
    index: hash::Index<Box<[u8]>>,
    keys: Vec<Option<Box<[u8]>>>,
}

/// The result of a program's lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The address of a value, in the map's region.
    Value(u32),
    /// The number of a map.
    Map(u32),
}

impl Map {
    /// Makes an empty map, or one with the contents of its definition.
    ///
    /// # Errors
    /// Linux refuses the definition, or it needs more than `most` bytes.
    pub fn new(definition: &MapDefinition, cpus: u32, most: u64) -> Result<Map, ObjectError> {
        let cpus = cpus.max(1);
        let mut definition = definition.clone();
        let kind = prepared(&mut definition, cpus)?;
        let values = Values::new(definition.value_size);
        let reserved = check_size(&definition, kind, cpus, most, &values)?;
        let entries = definition.max_entries;
        let table = match kind {
            MapKind::Array | MapKind::PerCpuArray => Index::Array,
            MapKind::Hash | MapKind::PerCpuHash | MapKind::DeviceHash | MapKind::HashOfMaps => {
                Index::Hash(Table::new(entries, cpus))
            }
            MapKind::LruHash | MapKind::LruPerCpuHash => {
                let common = definition.flags & Flags::NO_COMMON_LRU == 0;
                let keys = vec![None; entries as usize];
                Index::Lru(Evicting { index: hash::Index::default(), keys }, Lru::new(entries, cpus, common))
            }
            MapKind::Lpm => Index::Lpm(Lpm::new(entries, definition.key_size)),
            MapKind::Queue | MapKind::Stack => Index::Queue(Queue::new(entries, kind == MapKind::Stack)),
            MapKind::Bloom => Index::Bloom(Bloom::new(entries, hashes(&definition))),
            MapKind::Ring => Index::Ring(Ring::new(entries)),
            _ => Index::Slots(vec![false; entries as usize]),
        };
        let mut map = Map { definition, kind, cpus, values, table, lock: None, reserved };
        if matches!(map.table, Index::Array | Index::Slots(_)) {
            map.values.grow(entries as usize * map.copies() as usize);
        }
        if let Some(contents) = &map.definition.contents {
            map.values.get_mut(0).copy_from_slice(contents);
        }
        Ok(map)
    }

    /// Names the byte of the lock in each value.
    pub(crate) fn set_lock(&mut self, at: Option<usize>) {
        self.lock = at.filter(|at| at + 4 <= self.values.size());
    }

    /// The byte of the lock in each value.
    pub fn lock(&self) -> Option<usize> {
        self.lock
    }

    /// Values of a key: one, or one for each CPU.
    fn copies(&self) -> u32 {
        if self.kind.is_per_cpu() { self.cpus } else { 1 }
    }

    /// The slot of an entry for a CPU.
    fn slot(&self, entry: u32, cpu: u32) -> u32 {
        if self.kind.is_per_cpu() { entry * self.cpus + cpu } else { entry }
    }

    /// Bytes of memory that a full map takes.
    pub fn memory(&self) -> u64 {
        self.reserved
    }

    /// The entry of a key.
    fn entry(&self, key: &[u8]) -> Option<u32> {
        let number = || u32::from_ne_bytes(key.get(..4)?.try_into().ok()?).into();
        let number = || -> Option<u32> { number() };
        match &self.table {
            Index::Array => number().filter(|&at| at < self.definition.max_entries),
            Index::Slots(filled) => number().filter(|&at| filled.get(at as usize) == Some(&true)),
            Index::Hash(table) => table.find(key),
            Index::Lru(table, _) => table.index.get(key).copied(),
            Index::Lpm(lpm) => lpm.find(key),
            Index::Queue(_) | Index::Bloom(_) | Index::Ring(_) => None,
        }
    }

    /// The value that a program's lookup gives, or none for a type without lookups.
    pub(crate) fn lookup(&mut self, key: &[u8], cpu: u32) -> Option<Option<Found>> {
        match self.kind {
            MapKind::Queue | MapKind::Stack | MapKind::Bloom | MapKind::Ring => return None,
            MapKind::PerfEvents | MapKind::Programs | MapKind::Cpus => return None,
            _ => {}
        }
        let Some(entry) = self.entry(key) else { return Some(None) };
        if let Index::Lru(_, lru) = &mut self.table {
            lru.mark(entry);
        }
        if cpu >= self.copies() && self.kind.is_per_cpu() {
            return Some(None);
        }
        let slot = self.slot(entry, cpu);
        Some(Some(match self.kind {
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => Found::Map(self.stored(slot)),
            _ => Found::Value(self.values.address(slot)),
        }))
    }

    /// The number in a slot: of a device, a program or a map.
    fn stored(&self, slot: u32) -> u32 {
        let bytes = self.values.get(slot).first_chunk::<4>();
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    /// The number at a key of devices, CPUs, sockets, programs or maps.
    pub(crate) fn number(&self, key: u32) -> Option<u32> {
        self.entry(&key.to_ne_bytes()).map(|entry| self.stored(entry))
    }

    /// Changes a key's value as a program does, or none for a type that programs do not update.
    pub(crate) fn update(
        &mut self,
        key: &[u8],
        value: &[u8],
        flags: u64,
        cpu: u32,
    ) -> Option<Result<(), Errno>> {
        let allowed = matches!(
            self.kind,
            MapKind::Array
                | MapKind::PerCpuArray
                | MapKind::Hash
                | MapKind::PerCpuHash
                | MapKind::LruHash
                | MapKind::LruPerCpuHash
                | MapKind::Lpm
        );
        allowed.then(|| {
            let (slot, fresh) = self.prepare(key, flags, cpu)?;
            if fresh {
                // Other CPUs begin at 0.
                (0..self.copies()).for_each(|copy| self.values.get_mut(slot + copy).fill(0));
            }
            self.store(slot + if self.kind.is_per_cpu() { cpu } else { 0 }, value);
            Ok(())
        })
    }

    /// Stores a value in a slot, apart from its lock.
    fn store(&mut self, slot: u32, value: &[u8]) {
        let lock = self.lock;
        let own = self.values.get_mut(slot);
        match lock {
            Some(at) => {
                own[..at].copy_from_slice(&value[..at]);
                own[at + 4..].copy_from_slice(&value[at + 4..]);
            }
            None => own.copy_from_slice(value),
        }
    }

    /// The first slot that an update of a key writes, and whether its values are new.
    fn prepare(&mut self, key: &[u8], flags: u64, cpu: u32) -> Result<(u32, bool), Errno> {
        let lockless = flags & !Flags::LOCK;
        if lockless > Flags::PRESENT {
            return Err(Errno::EINVAL);
        }
        let locked = flags & Flags::LOCK != 0;
        if locked && (self.lock.is_none() || !matches!(self.kind, MapKind::Hash | MapKind::Array)) {
            return Err(Errno::EINVAL);
        }
        let present = self.entry(key);
        let (copies, per_cpu) = (self.copies(), self.kind.is_per_cpu());
        let (entry, fresh) = match &mut self.table {
            Index::Array => {
                let entry = present.ok_or(Errno::E2BIG)?;
                check_update(lockless, true)?;
                (entry, false)
            }
            Index::Hash(table) => {
                check_update(lockless, present.is_some())?;
                match present {
                    Some(entry) if per_cpu || locked => (entry, false),
                    Some(_) => (table.replace(key, cpu).ok_or(Errno::ENOENT)?, true),
                    None => (table.insert(key)?, true),
                }
            }
            Index::Lru(table, lru) => table.update(lru, key, lockless, cpu, per_cpu)?,
            Index::Lpm(lpm) => (lpm.update(key, lockless)?, true),
            _ => return Err(Errno::EINVAL),
        };
        let entries = match &self.table {
            Index::Hash(table) => table.entries(),
            Index::Lpm(lpm) => lpm.entries(),
            _ => entry as usize + 1,
        };
        self.values.grow(entries * copies as usize);
        Ok((entry * copies, fresh))
    }

    /// Removes a key as a program does, or none for a type without removals by programs.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Option<Result<(), Errno>> {
        let present = self.entry(key);
        Some(match &mut self.table {
            Index::Array => Err(Errno::EINVAL),
            Index::Hash(table) if self.kind != MapKind::HashOfMaps && self.kind != MapKind::DeviceHash => {
                table.remove(key).map(|_| ())
            }
            Index::Lru(table, lru) => match present {
                Some(entry) => {
                    table.forget(&[entry]);
                    lru.give_back(entry);
                    Ok(())
                }
                None => Err(Errno::ENOENT),
            },
            Index::Lpm(lpm) => lpm.remove(key),
            _ => return None,
        })
    }

    pub(crate) fn queue(&mut self) -> Option<&mut Queue> {
        match &mut self.table {
            Index::Queue(queue) => Some(queue),
            _ => None,
        }
    }

    pub(crate) fn bloom(&mut self) -> Option<&mut Bloom> {
        match &mut self.table {
            Index::Bloom(bloom) => Some(bloom),
            _ => None,
        }
    }

    pub(crate) fn ring(&mut self) -> Option<&mut Ring> {
        match &mut self.table {
            Index::Ring(ring) => Some(ring),
            _ => None,
        }
    }

    /// The bytes of a value at an address of the map's region.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, address: u32, length: usize) -> Option<&mut [u8]> {
        if let Index::Ring(ring) = &mut self.table {
            return ring.access(address, length);
        }
        let range = self.values.range(address, length)?;
        Some(&mut self.values.bytes_mut()[range])
    }

    /// Whether programs may write values.
    pub(crate) fn is_writable(&self) -> bool {
        self.definition.flags & Flags::READ_ONLY_PROGRAM == 0
            && !matches!(self.kind, MapKind::Devices | MapKind::DeviceHash | MapKind::Sockets)
    }

    /// Keys, and the addresses of a CPU's values, for a walk by a program; none for a type without walks.
    pub(crate) fn walk(&self, cpu: u32) -> Option<Vec<(Vec<u8>, u32)>> {
        let address = |entry| self.values.address(self.slot(entry, cpu));
        match &self.table {
            Index::Array => {
                let all = 0..self.definition.max_entries;
                Some(all.map(|entry| (entry.to_ne_bytes().to_vec(), address(entry))).collect())
            }
            Index::Hash(table) if self.kind != MapKind::HashOfMaps && self.kind != MapKind::DeviceHash => {
                Some(table.iter().map(|(key, entry)| (key.to_vec(), address(entry))).collect())
            }
            Index::Lru(table, _) => {
                Some(table.iter().map(|(key, entry)| (key.to_vec(), address(entry))).collect())
            }
            _ => None,
        }
    }
}

impl Evicting {
    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.keys.iter().enumerate().filter_map(|(entry, key)| Some((key.as_deref()?, entry as u32)))
    }

    fn forget(&mut self, entries: &[u32]) {
        for &entry in entries {
            if let Some(key) = self.keys[entry as usize].take() {
                self.index.remove(&key);
            }
        }
    }

    /// As Linux does, an update takes a new entry first, which may evict, and then looks for the key.
    fn update(
        &mut self,
        lru: &mut Lru,
        key: &[u8],
        flags: u64,
        cpu: u32,
        per_cpu: bool,
    ) -> Result<(u32, bool), Errno> {
        let mut evicted = Vec::new();
        // With values of CPUs, a change of a present key alone takes none.
        let taken = match per_cpu && flags == Flags::PRESENT {
            true => None,
            false => Some(lru.take(cpu, &mut evicted).ok_or(Errno::ENOMEM)?),
        };
        self.forget(&evicted);
        let old = self.index.get(key).copied();
        if let Err(error) = check_update(flags, old.is_some()) {
            taken.into_iter().for_each(|entry| lru.give_back(entry));
            return Err(error);
        }
        match (old, taken) {
            (Some(old), taken) if per_cpu => {
                lru.mark(old);
                taken.into_iter().for_each(|entry| lru.give_back(entry));
                Ok((old, false))
            }
            (Some(old), Some(new)) => {
                lru.mark(new);
                self.forget(&[old]);
                lru.give_back(old);
                self.place(key, new);
                Ok((new, true))
            }
            (None, Some(new)) => {
                self.place(key, new);
                Ok((new, true))
            }
            (_, None) => Err(Errno::ENOENT),
        }
    }

    fn place(&mut self, key: &[u8], entry: u32) {
        self.keys[entry as usize] = Some(key.into());
        self.index.insert(key.into(), entry);
    }
}

/// Checks a definition, and sets the number of entries that Linux makes of it.
pub(crate) fn prepared(definition: &mut MapDefinition, cpus: u32) -> Result<MapKind, ObjectError> {
    let kind = check(definition)?;
    if kind == MapKind::LruHash || kind == MapKind::LruPerCpuHash {
        definition.max_entries = lru_entries(definition, cpus);
    }
    // Loaders make one entry for each CPU where the size is left out.
    if kind == MapKind::PerfEvents && definition.max_entries == 0 {
        definition.max_entries = cpus;
    }
    Ok(kind)
}

/// The bits of a bloom filter.
pub(crate) fn bloom_bits(definition: &MapDefinition) -> u64 {
    Bloom::bits(definition.max_entries, hashes(definition))
}

/// The hash functions of a bloom filter.
pub(crate) fn hashes(definition: &MapDefinition) -> u32 {
    if definition.extra == 0 { 5 } else { definition.extra as u32 }
}

/// With a list for each CPU, all have the same number of entries.
fn lru_entries(definition: &MapDefinition, cpus: u32) -> u32 {
    let entries = definition.max_entries;
    if definition.flags & Flags::NO_COMMON_LRU == 0 {
        return entries;
    }
    entries.checked_next_multiple_of(cpus).unwrap_or(entries / cpus * cpus)
}

fn refused(definition: &MapDefinition, problem: impl ToString, advice: impl ToString) -> ObjectError {
    ObjectError::refused(format!("map {}", definition.name), problem, advice)
}

/// The most bytes of a value for each CPU (`PCPU_MIN_UNIT_SIZE`).
const PER_CPU_VALUE: u32 = 32 << 10;

/// Checks a definition as Linux does when it makes the map.
fn check(definition: &MapDefinition) -> Result<MapKind, ObjectError> {
    let refuse = |problem: String, advice: &str| Err(refused(definition, problem, advice));
    let Some(kind) = MapKind::of(definition.kind) else {
        let problem = match MapKind::name_of(definition.kind) {
            Some(name) => format!("type {} ({name}) is not supported by nicety", definition.kind),
            None => format!("type {} is unknown to Linux", definition.kind),
        };
        return refuse(problem, "docs/guide/xdp.md lists the types");
    };
    let &MapDefinition { key_size, value_size, max_entries, flags, .. } = definition;
    let sizes = match kind {
        MapKind::Hash | MapKind::LruHash | MapKind::PerCpuHash | MapKind::LruPerCpuHash => {
            (1..=512).contains(&key_size) && value_size > 0
        }
        MapKind::Lpm => (5..=260).contains(&key_size) && value_size > 0,
        MapKind::Queue | MapKind::Stack | MapKind::Bloom => key_size == 0 && value_size > 0,
        MapKind::Ring => key_size == 0 && value_size == 0,
        MapKind::Devices | MapKind::DeviceHash | MapKind::Cpus => {
            key_size == 4 && matches!(value_size, 4 | 8)
        }
        MapKind::HashOfMaps => (1..=512).contains(&key_size) && value_size == 4,
        MapKind::Array | MapKind::PerCpuArray => key_size == 4 && value_size > 0,
        // Loaders set the sizes of perf event arrays.
        MapKind::PerfEvents => key_size == 4,
        _ => key_size == 4 && value_size == 4,
    };
    if !sizes {
        let problem =
            format!("type {} with keys of {key_size} bytes and values of {value_size}", kind.name());
        return refuse(problem, "write sizes that Linux accepts for this type");
    }
    let lacks = max_entries == 0 && kind != MapKind::PerfEvents;
    if lacks || (kind == MapKind::Ring && (!max_entries.is_power_of_two() || max_entries < 4096)) {
        let advice = match lacks {
            true => {
                "the loader of the map sets this number; write {\"max_entries\": N, \"entries\": []} in a \
                 file for --map"
            }
            false => "write a power of two, at least 4096",
        };
        return refuse(format!("max_entries of {max_entries}"), advice);
    }
    if kind == MapKind::Lpm && flags & Flags::NO_PREALLOC == 0 {
        return refuse("an lpm_trie without BPF_F_NO_PREALLOC".to_owned(), "add the flag");
    }
    if kind.is_lru() && flags & Flags::NO_PREALLOC != 0 {
        return refuse(format!("BPF_F_NO_PREALLOC on an {}", kind.name()), "remove the flag");
    }
    if let Some(unknown) = flags::refused(kind, flags) {
        return refuse(
            format!("map_flags of {flags:#x} on a {}", kind.name()),
            &format!("remove {unknown:#x}"),
        );
    }
    if kind.is_per_cpu() && value_size > PER_CPU_VALUE {
        let problem = format!("values of {value_size} bytes for each CPU");
        return refuse(problem, &format!("write at most {PER_CPU_VALUE}"));
    }
    if kind == MapKind::Bloom && definition.extra > 15 {
        return refuse(format!("{} hash functions", definition.extra), "write at most 15 in map_extra");
    }
    Ok(kind)
}

/// The bytes of a full map, where they are at most `most`.
fn check_size(
    definition: &MapDefinition,
    kind: MapKind,
    cpus: u32,
    most: u64,
    values: &Values,
) -> Result<u64, ObjectError> {
    let entries = u64::from(definition.max_entries);
    let (memory, fits) = match kind {
        MapKind::Bloom => (Bloom::bits(definition.max_entries, hashes(definition)) / 8, true),
        MapKind::Ring => (entries, entries <= 1 << 28),
        kind if kind.is_per_cpu() => values.need((entries + u64::from(cpus)) * u64::from(cpus)),
        _ => values.need(entries + u64::from(cpus)),
    };
    // Entries of an LRU map have nodes and keys from the begin.
    let memory = memory.saturating_add(if kind.is_lru() { 48 * entries } else { 0 });
    if fits && memory <= most {
        return Ok(memory);
    }
    let problem = format!("it takes {memory} bytes, but only {most} are left for maps");
    Err(refused(definition, problem, "write a smaller max_entries"))
}
