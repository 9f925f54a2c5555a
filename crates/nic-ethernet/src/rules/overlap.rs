//! The search for a frame that matches several words at once.

use super::{TooManyMasks, Word};
use rustc_hash::FxHashSet;

/// Maximum number of search states at one offset.
const MOST_STATES: usize = 1 << 16;

/// Returns the words of a frame that matches all these words, if such a frame exists.
///
/// # Errors
/// When the search takes too long.
pub(crate) fn common(some: &[Word], others: &[Word]) -> Result<Option<Vec<Word>>, TooManyMasks> {
    let all = || some.iter().chain(others);
    let mut offsets: Vec<u32> = all().map(|word| word.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let mut found = Vec::new();
    for offset in offsets {
        let here: Vec<Word> = all().filter(|word| word.offset == offset).copied().collect();
        match value(&here)? {
            None => return Ok(None),
            Some(value) => found.push(Word { offset, mask: u32::MAX, start: value, end: value }),
        }
    }
    Ok(Some(found))
}

/// Returns the least value within the masked ranges of all these words.
fn value(words: &[Word]) -> Result<Option<u32>, TooManyMasks> {
    if words.iter().any(|word| word.start > word.end) {
        return Ok(None);
    }
    // The search starts at the most significant bit. The state of each word is whether its value so far equals its
    // start, and whether it equals its end.
    let full = (1u64 << words.len()) - 1;
    let mut seen: FxHashSet<(u32, u64, u64)> = FxHashSet::default();
    let mut open = vec![(32u32, 0u32, full, full)];
    while let Some((left, value, low, high)) = open.pop() {
        if left == 0 {
            return Ok(Some(value));
        }
        let bit = left - 1;
        let (zero, one) = (step(words, bit, 0, low, high), step(words, bit, 1, low, high));
        // The bit 0 is pushed last, so it is searched first.
        for (set, state) in [(1u32, one.filter(|_| one != zero)), (0, zero)] {
            if let Some((low, high)) = state
                && seen.insert((bit, low, high))
            {
                open.push((bit, value | set << bit, low, high));
            }
        }
        if seen.len() > MOST_STATES {
            return Err(TooManyMasks);
        }
    }
    Ok(None)
}

/// Returns the state after a bit, or `None` if a word's value leaves its range.
fn step(words: &[Word], bit: u32, set: u32, mut low: u64, mut high: u64) -> Option<(u64, u64)> {
    for (number, word) in words.iter().enumerate() {
        let of = |value: u32| value >> bit & 1;
        let (own, flag) = (set & of(word.mask), 1u64 << number);
        if low & flag != 0 {
            match own.cmp(&of(word.start)) {
                std::cmp::Ordering::Less => return None,
                std::cmp::Ordering::Greater => low &= !flag,
                std::cmp::Ordering::Equal => {}
            }
        }
        if high & flag != 0 {
            match own.cmp(&of(word.end)) {
                std::cmp::Ordering::Greater => return None,
                std::cmp::Ordering::Less => high &= !flag,
                std::cmp::Ordering::Equal => {}
            }
        }
    }
    Some((low, high))
}
