//! Counts distinct addresses exactly.

use nicety_traffic::capture::Source;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// The number of IPv4 addresses above which a bitmap of all addresses (512 MiB) needs less memory than a set.
const MANY: usize = 1 << 26;

/// The distinct addresses so far. The memory grows with their number, for IPv4 up to 512 MiB.
#[derive(Default)]
pub(super) struct Distinct {
    four: DistinctV4,
    six: HashSet<[u8; 16], BuildHasherDefault<Mix>>,
}

enum DistinctV4 {
    Set(HashSet<u32, BuildHasherDefault<Mix>>),
    Bits { bits: Vec<u64>, count: u64 },
}

impl Default for DistinctV4 {
    fn default() -> DistinctV4 {
        DistinctV4::Set(HashSet::default())
    }
}

impl Distinct {
    pub(super) fn see(&mut self, source: Source) {
        match source {
            Source::V4(address) => self.four.see(u32::from_be_bytes(address), MANY),
            Source::V6(address) => drop(self.six.insert(address)),
        }
    }

    pub(super) fn count(&self) -> u64 {
        let four = match &self.four {
            DistinctV4::Set(set) => set.len() as u64,
            DistinctV4::Bits { count, .. } => *count,
        };
        four + self.six.len() as u64
    }
}

impl DistinctV4 {
    fn see(&mut self, address: u32, many: usize) {
        match self {
            DistinctV4::Set(set) => {
                set.insert(address);
                if set.len() > many {
                    let mut bits = vec![0u64; 1 << 26];
                    let count = set.len() as u64;
                    set.iter().for_each(|address| bits[(address >> 6) as usize] |= 1 << (address & 63));
                    *self = DistinctV4::Bits { bits, count };
                }
            }
            DistinctV4::Bits { bits, count } => {
                let (word, bit) = (&mut bits[(address >> 6) as usize], 1 << (address & 63));
                *count += u64::from(*word & bit == 0);
                *word |= bit;
            }
        }
    }
}

/// A fast hash for millions of lookups per second. It has no defence against deliberate collisions, which is not needed here.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // The upper bits are mixed best. The table uses the upper and the lower bits, so both get the upper bits.
        self.0 ^ (self.0 >> 32)
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = (self.0 ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u32(u32::from_le_bytes(word));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_many_as_there_are(addresses in prop::collection::vec(0u32..200, 0..300), six in prop::collection::vec(0u8..9, 0..20)) {
            let mut distinct = Distinct::default();
            addresses.iter().for_each(|address| distinct.see(Source::V4((address << 20).to_be_bytes())));
            six.iter().for_each(|&byte| distinct.see(Source::V6([byte; 16])));
            let expected = addresses.iter().collect::<HashSet<_>>().len() + six.iter().collect::<HashSet<_>>().len();
            prop_assert_eq!(distinct.count(), expected as u64);
        }
    }

    #[test]
    fn bits_take_over_from_the_set() {
        let mut four = DistinctV4::default();
        for address in [1, 2, 64, u32::MAX, 64, 7, 2, 1 << 31] {
            four.see(address, 3);
        }
        let DistinctV4::Bits { count, .. } = four else { panic!("four addresses are more than three") };
        assert_eq!(count, 6);
    }
}
