//! Samples of perf events, and the readers of a program's records.

use crate::waiters::Waiters;
use nicety_ebpf::Sample;
use std::cell::{Cell, RefCell};

/// Bytes of samples that a CPU keeps for its reader: 64 pages, as libbpf's readers ask for.
const ROOM: usize = 64 * 4096;

/// Samples of a program, and the readers of its records.
#[derive(Default)]
pub(crate) struct Events {
    pub(super) samples: RefCell<Vec<Sample>>,
    pub(super) lost: Cell<u64>,
    pub(super) readers: Waiters,
}

impl Events {
    /// Keeps the samples of a run. A sample without room on its CPU is lost.
    pub(super) fn keep(&self, samples: Vec<Sample>) {
        let mut kept = self.samples.borrow_mut();
        for sample in samples {
            let own = kept.iter().filter(|other| (other.map, other.cpu) == (sample.map, sample.cpu));
            let used: usize = own.map(|other| other.bytes.len()).sum();
            match used + sample.bytes.len() <= ROOM {
                true => kept.push(sample),
                false => self.lost.set(self.lost.get() + 1),
            }
        }
    }

    pub(super) fn take(&self, map: usize) -> Vec<Vec<u8>> {
        let mut kept = self.samples.borrow_mut();
        let (taken, others) = kept.drain(..).partition(|sample| sample.map == map);
        *kept = others;
        Vec::into_iter(taken).map(|sample: Sample| sample.bytes).collect()
    }
}
