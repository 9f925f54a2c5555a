//! The last writer of each word, and the time at which memory got it. If nothing keeps caches coherent, this shows
//! which accesses would have read an older value.

use rustc_hash::FxHashMap;

/// Bytes of a word.
const WORD: u64 = 4;
/// Bits for the cache that wrote a word. The other bits have the time at which memory got it.
const CACHE_BITS: u32 = 12;
/// Written past the caches.
const NOBODY: u64 = (1 << CACHE_BITS) - 1;
/// Memory does not have it yet.
const NEVER: u64 = u64::MAX >> CACHE_BITS;

/// The last write of each written word.
#[derive(Clone, Debug)]
pub(crate) struct Writers {
    line: u64,
    /// By line and word: the time at which memory got the value, and the cache that wrote it. `None` if nothing was
    /// written.
    words: FxHashMap<u64, Box<[Option<Written>]>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written(std::num::NonZeroU64);

impl Written {
    fn new(by: Option<usize>, reached: Option<u64>) -> Written {
        let by = by.map_or(NOBODY, |cache| cache as u64);
        let reached = reached.unwrap_or(NEVER);
        // Uses are counted from one, so this is not zero.
        Written(std::num::NonZeroU64::new((reached << CACHE_BITS) | by).expect("a use has a number"))
    }

    const fn by(self, cache: usize) -> bool {
        self.0.get() & NOBODY == cache as u64
    }

    const fn reached(self) -> u64 {
        self.0.get() >> CACHE_BITS
    }
}

impl Writers {
    pub(crate) fn new(line: u32) -> Writers {
        Writers { line: line.into(), words: FxHashMap::default() }
    }

    fn words_of(&self, address: u64, bytes: u32) -> (u64, std::ops::Range<usize>) {
        let at = address % self.line;
        let words = at / WORD..(at + u64::from(bytes)).min(self.line).div_ceil(WORD);
        (address / self.line, words.start as usize..words.end as usize)
    }

    pub(crate) fn stored(&mut self, by: Option<usize>, address: u64, bytes: u32, reached: Option<u64>) {
        let (number, range) = self.words_of(address, bytes);
        let each = (self.line / WORD) as usize;
        let words = self.words.entry(number).or_insert_with(|| vec![None; each].into());
        words[range].fill(Some(Written::new(by, reached)));
    }

    /// Records that a cache has written a line to memory.
    pub(crate) fn reached_memory(&mut self, cache: usize, number: u64, now: u64) {
        for word in self.words.get_mut(&number).into_iter().flatten().flatten() {
            if word.by(cache) && word.reached() == NEVER {
                *word = Written::new(Some(cache), Some(now));
            }
        }
    }

    /// Whether one of these words was written by another cache, and reached memory later than this cache filled the
    /// line.
    pub(crate) fn is_stale(&self, cache: usize, address: u64, bytes: u32, filled: u64) -> bool {
        let (number, range) = self.words_of(address, bytes);
        let Some(words) = self.words.get(&number) else { return false };
        words[range].iter().flatten().any(|word| !word.by(cache) && word.reached() > filled)
    }
}
