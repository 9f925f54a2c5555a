//! The caches of all cores behind the data caches: `[memory.cache.second]` and `[memory.cache.third]`.

use crate::spec::cache_shape::indexed;
use nicety_hpu::CacheShape;
use nicety_spec::Section;

/// A cache of all cores. Its lines are as long as those of the data caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuterCacheSpec {
    /// Its shape.
    pub shape: CacheShape,
    /// Cycles from a miss in a data cache until the line arrives from here.
    pub fill: u64,
}

/// The caches behind the data caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OuterCachesSpec {
    /// The caches, the nearest first.
    pub caches: [Option<OuterCacheSpec>; 2],
    /// Index of the cache that gets the lines of packets and arguments when the card writes them. None: they are in
    /// memory alone.
    pub deposit: Option<usize>,
}

const NAMES: [&str; 2] = ["second", "third"];
const KEYS: [&str; 3] = ["size", "ways", "fill"];

/// Reads the caches behind the data caches. `line` is the length of their lines.
pub(super) fn read(s: &Section<'_>, line: u32) -> OuterCachesSpec {
    let caches = NAMES.map(|name| read_one(&s.section(name), line));
    let there = NAMES.map(|name| KEYS.iter().any(|key| s.section(name).has(key)));
    if there[1] && !there[0] {
        s.section(NAMES[1]).refuse(
            "size",
            "there is no second cache before the third one",
            "write memory.cache.second.size and its other keys, or leave out memory.cache.third",
        );
    }
    let words = ["none", NAMES[0], NAMES[1]];
    let doc = "the cache that gets packets and arguments when the card writes them";
    let deposit = match s.choice_or("deposit", &words, "none", doc) {
        "second" => Some(0),
        "third" => Some(1),
        _ => None,
    };
    if let Some(index) = deposit.filter(|&index| !there[index]) {
        let name = NAMES[index];
        s.refuse(
            "deposit",
            &format!("there is no {name} cache"),
            &format!("write memory.cache.{name}.size and its other keys, or \"none\""),
        );
    }
    OuterCachesSpec { caches, deposit }
}

/// Returns whether the section of a second cache is there.
pub(super) fn is_there(s: &Section<'_>) -> bool {
    KEYS.iter().any(|key| s.section(NAMES[0]).has(key))
}

fn read_one(s: &Section<'_>, line: u32) -> Option<OuterCacheSpec> {
    if !KEYS.iter().any(|key| s.has(key)) {
        return None;
    }
    let bytes = s.size("size", 16..=256 << 20, "bytes of this cache, which all cores share") as u32;
    let ways = s.count_or("ways", 1..=1024, 1, "places that a line may have") as u32;
    let doc = "cycles from a miss in a data cache until the line arrives from here";
    let fill = s.count("fill", 0..=100_000, doc);
    if !s.has("size") {
        // The key has no default.
        return None;
    }
    Some(OuterCacheSpec { shape: indexed(s, bytes, ways, line)?, fill })
}
