//! Words that handlers share in memory without a model of contention. Atomic operations there cost the same as for a single
//! processor, so a card that keeps up in the model may not keep up.

use nicety_nic_processors::{AtomicWord, HpuSpec, Level, Piece, Processors};
use schemars::JsonSchema;
use serde::Serialize;

/// Shared words in memory without waits of one access for another. No real card has such a memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Unmodelled")]
pub struct UnmodelledRow {
    /// The word of atomic operations with the most accesses; none if handlers share words only by loads and stores.
    pub word: Option<String>,
    /// Accesses to it per packet, from the first atomic operation on.
    pub word_accesses: f64,
    /// Words of atomic operations there.
    pub atomic_words: u64,
    /// Words of ideal memory, of the state or of variables, with another value at the end: handlers have stored them.
    pub stored_words: u64,
    /// The levels of memory, as the card's spec names them.
    pub levels: Vec<&'static str>,
    /// The keys of the card's spec that model it. Those with a value suffice.
    pub keys: Vec<String>,
}

/// The words that handlers share, before a run.
pub(super) struct SharedBefore {
    bytes: [Vec<u8>; 2],
}

/// Pieces of memory that handlers share.
const SHARED: [Piece; 2] = [Piece::State, Piece::Data];

impl SharedBefore {
    pub(super) fn of(processors: &Processors, hpu: &HpuSpec) -> SharedBefore {
        // Other memory does not matter.
        let is_ideal = SHARED.iter().any(|piece| hpu.memories.place(*piece) == Level::Ideal);
        let bytes = if is_ideal { processors.shared_bytes() } else { Default::default() };
        SharedBefore { bytes }
    }

    /// Returns the words without a model in a run with `packets` packets; none if all have one, or a single processor uses the
    /// memory.
    pub(super) fn unmodelled(
        &self,
        processors: &Processors,
        hpu: &HpuSpec,
        packets: u64,
    ) -> Option<UnmodelledRow> {
        let memories = &hpu.memories;
        if hpu.cores < 2 {
            return None;
        }
        // Handlers of PsPIN have no keys that model it.
        let is_free = |word: &AtomicWord| match word.level {
            Level::Ideal => true,
            Level::Core => false,
            level => hpu.pspin.is_none() && !memories.in_order(level),
        };
        let words: Vec<AtomicWord> = processors.atomic_words().into_iter().filter(is_free).collect();
        let now = processors.shared_bytes();
        let stored = |number: usize| match memories.place(SHARED[number]) {
            Level::Ideal => changed(&self.bytes[number], &now[number]),
            _ => 0,
        };
        let stored = [stored(0), stored(1)];
        let mut levels: Vec<Level> = words.iter().map(|word| word.level).collect();
        levels.extend(stored.iter().any(|words| *words > 0).then_some(Level::Ideal));
        levels.sort_unstable();
        levels.dedup();
        if levels.is_empty() {
            return None;
        }
        let is_used = |piece: Piece| {
            let of = if piece == Piece::State { "the state" } else { "the program's data" };
            stored[usize::from(piece == Piece::Data)] > 0 || words.iter().any(|word| word.word.ends_with(of))
        };
        let pieces: Vec<Piece> = SHARED.into_iter().filter(|piece| is_used(*piece)).collect();
        Some(UnmodelledRow {
            word: words.first().map(|word| word.word.clone()),
            word_accesses: words.first().map_or(0.0, |word| word.accesses as f64 / packets.max(1) as f64),
            atomic_words: words.len() as u64,
            stored_words: stored.iter().sum(),
            keys: levels.iter().flat_map(|level| keys(*level, &pieces)).collect(),
            levels: levels.into_iter().map(Level::name).collect(),
        })
    }
}

/// Returns the number of four-byte words with another value.
fn changed(before: &[u8], now: &[u8]) -> u64 {
    before.chunks(4).zip(now.chunks(4)).filter(|(before, now)| before != now).count() as u64
}

/// Returns the keys that model the contention of a level. Pieces in ideal memory move to a level with banks.
fn keys(level: Level, pieces: &[Piece]) -> Vec<String> {
    let (first, level) = match level {
        Level::Ideal => {
            (pieces.iter().map(|piece| format!("memory.{}=l1", piece.key())).collect(), Level::L1)
        }
        level => (vec![format!("memory.{}.contended=true", level.name())], level),
    };
    let of_level = ["banks", "occupancy", "atomics", "atomic_occupancy"];
    let of_level = of_level.iter().map(|key| format!("memory.{}.{key}", level.name()));
    [first, of_level.collect()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_name_a_level_with_banks() {
        let ideal = keys(Level::Ideal, &[Piece::State, Piece::Data]);
        assert_eq!(ideal[..3], ["memory.state=l1", "memory.data=l1", "memory.l1.banks"]);
        assert_eq!(keys(Level::L2, &[])[..2], ["memory.l2.contended=true", "memory.l2.banks"]);
    }

    #[test]
    fn words_are_changed_by_their_bytes() {
        assert_eq!(changed(&[0; 12], &[0, 0, 1, 0, 0, 0, 0, 0, 9, 9, 9, 9]), 2);
        assert_eq!(changed(&[1; 6], &[1, 1, 1, 1, 1, 2]), 1);
    }
}
