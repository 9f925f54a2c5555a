//! Sizes and offsets of a map's memory on a card: `struct nicety_map` of `handlers/runtime/xdp/map.h`.

use crate::error::ObjectError;
use crate::map::{self, Flags, MapKind};
use crate::object::MapDefinition;

/// Bytes of `struct map_head`.
const HEAD: u64 = 32;
/// Bytes of `struct map_bucket`, and of the part of an entry in front of its key.
const BUCKET: u64 = 8;
/// Bytes of `struct lru_node`, `struct lru_set` and `struct lru_local`.
const LRU: [u64; 3] = [16, 64, 48];
/// Bytes of `struct ring` without its records.
const RING: u64 = 32;
/// Bytes of a core's samples of perf events.
const EVENTS: u64 = 4096;
/// The offset that no value has: there is no lock.
const NONE: u32 = u32::MAX;

/// A map on a card.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The definition, with the number of entries that Linux makes of it.
    pub definition: MapDefinition,
    /// The type.
    pub kind: MapKind,
    /// Cores.
    pub cpus: u32,
    /// Bytes of its memory.
    pub memory_bytes: u64,
    /// Bytes of a value, a multiple of 8.
    pub stride: u32,
    /// Bytes from one entry to the next.
    pub entry_bytes: u32,
    /// The offset of the first entry.
    pub entries: u32,
    /// The offset of the key in an entry.
    pub key_at: u32,
    /// The offset of the values in an entry.
    pub value_at: u32,
    /// The offset of the first bucket.
    pub buckets: u32,
    /// Buckets less one; bits of a bloom filter less one.
    pub mask: u32,
    /// The offset of the part of each core.
    pub cores: u32,
    /// The offset of the lock in a value, or the largest number.
    pub lock_at: u32,
    /// Hash functions of a bloom filter; the shift from a hash to the number of its bucket.
    pub extra: u32,
}

/// Offsets before they are known to fit.
#[derive(Default)]
struct Wide {
    entry_bytes: u64,
    entries: u64,
    key_at: u64,
    value_at: u64,
    buckets: u64,
    mask: u64,
    cores: u64,
    all: u64,
}

impl Layout {
    /// The layout of a map for a card with these cores. `lock` is the place of a `struct bpf_spin_lock` in its value.
    ///
    /// # Errors
    /// Linux refuses the definition, or the map is larger than the addresses of a card.
    pub fn of(definition: &MapDefinition, cpus: u32, lock: Option<usize>) -> Result<Layout, ObjectError> {
        let mut definition = definition.clone();
        let kind = map::prepared(&mut definition, cpus)?;
        let stride = u64::from(definition.value_size).next_multiple_of(8);
        let copies = if kind.is_per_cpu() { u64::from(cpus) } else { 1 };
        let wide = wide(&definition, kind, cpus, stride * copies);
        if wide.all > u64::from(u32::MAX) {
            let place = format!("map {}", definition.name);
            let problem = format!("it takes {} bytes", wide.all);
            return Err(ObjectError::refused(place, problem, "write a smaller max_entries"));
        }
        Ok(Layout {
            kind,
            cpus,
            memory_bytes: wide.all,
            stride: stride as u32,
            entry_bytes: wide.entry_bytes as u32,
            entries: wide.entries as u32,
            key_at: wide.key_at as u32,
            value_at: wide.value_at as u32,
            buckets: wide.buckets as u32,
            mask: wide.mask as u32,
            cores: wide.cores as u32,
            lock_at: lock.map_or(NONE, |at| at as u32),
            extra: if wide.buckets > 0 { 32 - (wide.mask + 1).ilog2() } else { map::hashes(&definition) },
            definition,
        })
    }

    /// The words of an entry of a firmware's table, with the symbol of the memory.
    pub(super) fn table_words(&self, memory: &str) -> [String; super::TABLE_WORDS] {
        let definition = &self.definition;
        let [kind, key, entries] = [self.kind as u32, definition.key_size, definition.max_entries];
        let [bytes, buckets, shift, value] = [self.entry_bytes, self.buckets, self.extra, self.value_at];
        let number = |word: u32| word.to_string();
        [
            number(kind),
            number(key),
            number(entries),
            memory.to_owned(),
            number(bytes),
            number(buckets),
            number(shift),
            number(value),
        ]
    }

    /// The words of the descriptor, with the symbol of the memory.
    pub(super) fn words(&self, number: u32, memory: &str) -> Vec<String> {
        let definition = &self.definition;
        let before = [
            self.kind as u32,
            definition.key_size,
            definition.value_size,
            definition.max_entries,
            definition.flags,
            NONE,
            number,
            self.cpus,
        ];
        let behind = [
            self.memory_bytes as u32,
            self.stride,
            self.entry_bytes,
            self.entries,
            self.key_at,
            self.value_at,
        ];
        let last = [self.mask, self.cores, self.lock_at, self.extra];
        let number = |word: &u32| word.to_string();
        let buckets = if self.buckets > 0 { format!("{memory}+{}", self.buckets) } else { "0".to_owned() };
        let mut words: Vec<String> = before.iter().map(number).collect();
        words.push(memory.to_owned());
        words.extend(behind.iter().map(number));
        words.push(buckets);
        words.extend(last.iter().map(number));
        words
    }
}

/// The offsets of a map, where `values` are the bytes of an entry's values.
fn wide(definition: &MapDefinition, kind: MapKind, cpus: u32, values: u64) -> Wide {
    let (entries, keys) = (u64::from(definition.max_entries), u64::from(definition.key_size));
    let plain = |entry_bytes: u64| Wide { entry_bytes, all: entries * entry_bytes, ..Wide::default() };
    match kind {
        MapKind::Array | MapKind::PerCpuArray => plain(values),
        MapKind::ArrayOfMaps | MapKind::Programs => plain(4),
        MapKind::Devices | MapKind::Cpus | MapKind::Sockets => plain(8 + values),
        MapKind::Queue | MapKind::Stack => {
            Wide { entry_bytes: values, entries: HEAD, all: HEAD + entries * values, ..Wide::default() }
        }
        MapKind::Bloom => {
            let bits = map::bloom_bits(definition);
            Wide { mask: bits - 1, all: bits / 8, ..Wide::default() }
        }
        MapKind::Ring => Wide { entries: RING, all: RING + 2 * entries, ..Wide::default() },
        MapKind::PerfEvents => {
            let cores = u64::from(cpus).min(entries);
            Wide { entry_bytes: EVENTS, all: EVENTS * cores, ..Wide::default() }
        }
        MapKind::Lpm => {
            // Children, bits, and whether it has a value; then the prefix in words.
            let value_at = (16 + (keys - 4).next_multiple_of(4)).next_multiple_of(8);
            let entry_bytes = value_at + values;
            let all = HEAD + (2 * entries + 2) * entry_bytes;
            Wide { entry_bytes, entries: HEAD, key_at: 16, value_at, all, ..Wide::default() }
        }
        MapKind::Hash
        | MapKind::PerCpuHash
        | MapKind::LruHash
        | MapKind::LruPerCpuHash
        | MapKind::DeviceHash
        | MapKind::HashOfMaps => hash(definition, kind, cpus, values),
    }
}

fn hash(definition: &MapDefinition, kind: MapKind, cpus: u32, values: u64) -> Wide {
    let (entries, keys, cpus) =
        (u64::from(definition.max_entries), u64::from(definition.key_size), u64::from(cpus));
    // A shift of a hash by all of its bits is undefined, so there is more than one.
    let buckets = entries.next_power_of_two().max(2);
    let cores = HEAD + buckets * BUCKET;
    let [node, set, local] = LRU;
    // Each core has a spare entry, or its lists.
    let (node, own, spare) = match (kind.is_lru(), definition.flags & Flags::NO_COMMON_LRU != 0) {
        (false, _) => (0, (4 * cpus).next_multiple_of(8), cpus),
        (true, false) => (node, set + cpus * local, 0),
        (true, true) => (node, cpus * set, 0),
    };
    let key_at = BUCKET + node;
    let value_at = key_at + keys.next_multiple_of(8);
    let entry_bytes = value_at + values;
    let first = cores + own;
    Wide {
        entry_bytes,
        entries: first,
        key_at,
        value_at,
        buckets: HEAD,
        mask: buckets - 1,
        cores,
        all: first + (entries + spare) * entry_bytes,
    }
}
