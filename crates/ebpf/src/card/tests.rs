use super::*;
use crate::map::MapKind;

fn map_of(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapDefinition {
    MapDefinition {
        name: "m".to_owned(),
        kind: kind as u32,
        key_size,
        value_size,
        max_entries,
        ..MapDefinition::default()
    }
}

#[test]
fn values_of_a_per_cpu_array_lie_together() {
    let layout = Layout::of(&map_of(MapKind::PerCpuArray, 4, 12, 5), 3, None).unwrap();
    assert_eq!((layout.stride, layout.entry_bytes, layout.memory_bytes), (16, 48, 240));
}

#[test]
fn a_hash_has_buckets_spares_and_entries() {
    let layout = Layout::of(&map_of(MapKind::Hash, 6, 4, 5), 3, None).unwrap();
    // The top three bits of a hash are the number of its bucket.
    assert_eq!((layout.mask, layout.buckets, layout.cores, layout.extra), (7, 32, 96, 29));
    // Three words of spare entries are filled up to 16 bytes; an entry has 8 bytes, its key in 8, and its value in 8.
    assert_eq!((layout.entries, layout.key_at, layout.value_at, layout.entry_bytes), (112, 8, 16, 24));
    assert_eq!(layout.memory_bytes, 112 + (5 + 3) * 24);
}

#[test]
fn maps_beyond_the_memory_are_refused_with_sizes() {
    let mut object = Object::default();
    object.maps = vec![map_of(MapKind::PerCpuArray, 4, 8, 65_536), map_of(MapKind::Array, 4, 8, 1)];
    let card = CardValues { cpus: 16, ..CardValues::default() };
    let error = assembly(&object, &[0, 1], &card).unwrap_err().to_string();
    assert_eq!(
        error,
        "map m: it takes 8388608 bytes on 16 cores, and all maps together take 8388616 bytes, but the \
         card's memory has 1048576 (hpu.memory); write a smaller max_entries, give one by --map m=FILE, or \
         raise hpu.memory"
    );
    assert!(assembly(&object, &[1], &card).unwrap().contains("nicety_map_m_1:"));
}
