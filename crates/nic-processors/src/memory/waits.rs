//! The source lines of handlers that wait for memory.

use crate::commands::refusals::place;
use crate::running::Turn;
use crate::spec::Level;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most code addresses with separate counts of waits, and most lines in a report.
const PLACES: usize = 1024;
const LINES: usize = 8;

/// Cycles that cores have waited at one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingLine {
    /// The source line.
    pub place: String,
    /// Accesses of this line that waited.
    pub waits: u64,
    /// Total cycles of their waits.
    pub cycles: u64,
}

/// Waits by level, program and pc.
#[derive(Default)]
pub(super) struct Waits(FxHashMap<(Level, usize, u32), WaitingLine>);

impl Waits {
    /// Counts a handler's wait of `cycles` cycles at its next instruction.
    pub fn count(&mut self, turn: &Turn<'_>, level: Level, cycles: u64) {
        let (image, pc) = (&turn.attachment.program.handlers.image, turn.pc);
        let key = (level, Arc::as_ptr(image) as usize, pc);
        if self.0.len() >= PLACES && !self.0.contains_key(&key) {
            return;
        }
        let new = || WaitingLine { place: place(image, pc), waits: 0, cycles: 0 };
        let line = self.0.entry(key).or_insert_with(new);
        line.waits += 1;
        line.cycles += cycles;
    }

    /// Returns the lines with the longest waits for a level.
    pub(super) fn lines(&self, level: Level) -> Vec<WaitingLine> {
        let mut by_line: FxHashMap<String, WaitingLine> = FxHashMap::default();
        for (_, line) in self.0.iter().filter(|((of, ..), _)| *of == level) {
            let new = || WaitingLine { waits: 0, cycles: 0, place: line.place.clone() };
            let sum = by_line.entry(line.place.clone()).or_insert_with(new);
            sum.waits += line.waits;
            sum.cycles += line.cycles;
        }
        let mut lines: Vec<_> = by_line.into_values().collect();
        lines.sort_by(|a, b| {
            (b.cycles, b.waits).cmp(&(a.cycles, a.waits)).then_with(|| a.place.cmp(&b.place))
        });
        lines.truncate(LINES);
        lines
    }
}
