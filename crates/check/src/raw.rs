//! Defects at instructions, each once.

use crate::calls::Site;
use crate::finding::Defect;
use rustc_hash::FxHashMap;

/// A place of a finding.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub run: u32,
    pub site: Site,
    pub action: String,
}

/// A defect at an instruction, with the number of times.
pub(crate) struct Raw {
    pub defect: Defect,
    pub at: Place,
    pub other: Option<Place>,
    pub times: u64,
}

/// Findings by instruction.
#[derive(Default)]
pub(crate) struct Findings {
    pub all: Vec<Raw>,
    known: FxHashMap<(Defect, u32, u32), usize>,
}

impl Findings {
    pub fn add(&mut self, defect: Defect, at: Place, other: Option<Place>) {
        let key = (defect, at.site.pc, other.as_ref().map_or(0, |other| other.site.pc));
        if let Some(&index) = self.known.get(&key) {
            self.all[index].times += 1;
            return;
        }
        self.known.insert(key, self.all.len());
        self.all.push(Raw { defect, at, other, times: 1 });
    }
}
