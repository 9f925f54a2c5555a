//! The data caches of the handler cores: `[memory.cache]`.

use crate::spec::cache_shape::indexed;
use crate::spec::outer_caches::{self, OuterCachesSpec};
use nicety_hpu::{AccessKind, CacheShape, Coherence, CycleCosts, Writes};
use nicety_spec::Section;

/// The data caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataCacheSpec {
    /// The shape of each cache.
    pub shape: CacheShape,
    /// Whether each core has its own cache. Otherwise each cluster has one.
    pub of_core: bool,
    /// Cycles of a load that hits.
    pub load: u32,
    /// Cycles of a store that hits.
    pub store: u32,
    /// The write policy.
    pub writes: Writes,
    /// The coherence protocol.
    pub coherence: Coherence,
    /// Further cycles of an access for which other caches give up their lines.
    pub invalidate: u32,
    /// Cycles until an owner has handed over its line.
    pub transfer: u32,
    /// The caches of all cores behind these.
    pub outer: OuterCachesSpec,
}

impl DataCacheSpec {
    /// Returns the cycles of an access that hits.
    pub const fn latency(&self, kind: AccessKind) -> u32 {
        if matches!(kind, AccessKind::Load) { self.load } else { self.store }
    }
}

const KEYS: [&str; 10] =
    ["size", "ways", "line", "of", "load", "store", "writes", "coherence", "invalidate", "transfer"];

/// The longest latency of the model, in cycles.
const MOST: u64 = 100_000;

/// Returns whether `[memory.cache]` is present.
pub(super) fn is_there(s: &Section<'_>) -> bool {
    KEYS.iter().any(|key| s.has(key))
}

/// Reads `[memory.cache]`, if it is present. `costs` are the costs of instructions that do not wait for memory, from
/// `section`.
pub(super) fn read(s: &Section<'_>, costs: &CycleCosts, section: &str) -> Option<DataCacheSpec> {
    if !is_there(s) {
        return None;
    }
    let bytes = s.size("size", 16..=16 << 20, "bytes of a data cache") as u32;
    let ways = s.count_or("ways", 1..=1024, 1, "places that a line may have") as u32;
    let line = s.size_or("line", 4..=4096, "64 B", "bytes of a line") as u32;
    let of_core =
        s.choice_or("of", &["core", "cluster"], "core", "the unit with a separate data cache") == "core";
    let latency = |key, least: u16, doc| {
        let cycles = s.count_or(key, 1..=MOST, least.max(1).into(), doc) as u32;
        if cycles < least.into() {
            s.refuse(
                key,
                &format!(
                    "an instruction that does not wait for memory takes {least} cycles ({section}.{key})"
                ),
                &format!("write {least} or more, or lower {section}.{key}"),
            );
        }
        cycles.max(least.into())
    };
    let load = latency("load", costs.load, "cycles of a load that finds its line");
    let store = latency("store", costs.store, "cycles of a store that finds its line");
    let writes = match s.choice_or("writes", &["back", "through"], "back", "write policy of the caches") {
        "through" => Writes::Through,
        _ => Writes::Back,
    };
    let coherence = match s.choice_or(
        "coherence",
        &["ownership", "none"],
        "ownership",
        "coherence protocol of the caches",
    ) {
        "none" => Coherence::None,
        _ => Coherence::Ownership,
    };
    let (invalidate, transfer) = prices(s, writes, coherence);
    let outer = outer_caches::read(s, line);
    if !s.has("size") {
        // The key has no default.
        return None;
    }
    let shape = indexed(s, bytes, ways, line)?;
    Some(DataCacheSpec { shape, of_core, load, store, writes, coherence, invalidate, transfer, outer })
}

/// Reads the costs of ownership, which have no defaults.
fn prices(s: &Section<'_>, writes: Writes, coherence: Coherence) -> (u32, u32) {
    if coherence == Coherence::None {
        if let Some(key) = ["invalidate", "transfer"].into_iter().find(|key| s.has(key)) {
            // The key is known nevertheless.
            s.count(key, 0..=MOST, "");
            s.refuse(
                key,
                "without coherence no cache affects the lines of another",
                "leave it out, or write coherence = \"ownership\"",
            );
        }
        return (0, 0);
    }
    let doc = "additional cycles of an access that takes lines from other caches";
    let invalidate = s.count("invalidate", 0..=MOST, doc) as u32;
    let doc = "cycles until a cache has a line that another cache has changed";
    if writes == Writes::Through {
        if s.has("transfer") {
            s.count("transfer", 0..=MOST, doc);
            s.refuse(
                "transfer",
                "caches that write through have no line that memory does not have",
                "leave it out, or write writes = \"back\"",
            );
        }
        return (invalidate, 0);
    }
    (invalidate, s.count("transfer", 0..=MOST, doc) as u32)
}
