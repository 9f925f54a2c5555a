//! The waits for single banks, by the data in them.

use crate::memory::reach::Reach;
use crate::programs::program::map;
use crate::running::Turn;
use crate::spec::{Level, Piece};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::cmp::Reverse;

/// Most banks and data with separate counts, and most in a report.
const PLACES: usize = 1 << 14;
const LISTED: usize = 32;

/// Waits of handlers for a bank, at one piece of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankUse {
    /// The level's name in specs.
    pub level: &'static str,
    /// The cluster of the memory.
    pub memory: usize,
    /// The bank.
    pub bank: usize,
    /// The data: a variable such as `table+8`, `state+4`, or a piece of private memory such as `packet`.
    pub data: String,
    /// Accesses that waited.
    pub waits: u64,
    /// Total cycles of their waits.
    pub cycles: u64,
}

/// A bank and the data in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Place {
    level: Level,
    memory: usize,
    bank: usize,
    piece: Piece,
    program: u32,
    /// The address of the word, in the state its offset. Zero for private memory.
    word: u32,
}

/// Waits and their cycles, by bank and data.
#[derive(Default)]
pub(super) struct BankWaits(RefCell<FxHashMap<Place, [u64; 2]>>);

impl BankWaits {
    /// Counts a handler's wait of `cycles` cycles for a bank.
    pub(super) fn count(&self, turn: &Turn<'_>, at: &Reach<'_>, bank: usize, cycles: u64) {
        let word = match at.piece {
            Piece::State => (at.address & !3).saturating_sub(turn.attachment.state_address()),
            Piece::Data => at.address & !3,
            _ => 0,
        };
        let program = turn.attachment.program.number;
        let Reach { level, memory, piece, .. } = *at;
        let place = Place { level, memory, bank, piece, program, word };
        let mut places = self.0.borrow_mut();
        if places.len() < PLACES || places.contains_key(&place) {
            let counts = places.entry(place).or_default();
            *counts = [counts[0] + 1, counts[1] + cycles];
        }
    }

    /// Returns the longest waits. `variable` names the variable at an address of a program.
    pub(super) fn list(&self, variable: impl Fn(u32, u32) -> Option<String>) -> Vec<BankUse> {
        let places = self.0.borrow();
        let mut longest: Vec<(&Place, &[u64; 2])> = places.iter().collect();
        longest.sort_by_key(|(place, counts)| (Reverse(counts[1]), Reverse(counts[0]), **place));
        longest.truncate(LISTED);
        let data = |place: &Place| match place.piece {
            Piece::State => format!("state+{}", place.word),
            Piece::Data => {
                let known = variable(place.program, place.word);
                known.unwrap_or_else(|| format!("data+{}", place.word - map::MEMORY))
            }
            private => private.key().to_owned(),
        };
        let bank_use = |(place, &[waits, cycles]): (&Place, &[u64; 2])| BankUse {
            level: place.level.name(),
            memory: place.memory,
            bank: place.bank,
            data: data(place),
            waits,
            cycles,
        };
        longest.into_iter().map(bank_use).collect()
    }
}
