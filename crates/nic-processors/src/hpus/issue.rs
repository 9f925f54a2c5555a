//! The issue of cores that several hardware threads share.
//!
//! A port of a core issues one instruction a cycle. Each thread asks for a port with its next instruction, once the
//! one before it is complete. The threads of a core come in the order in which they ask. A thread that waits for
//! memory asks for nothing, so that its core issues for others.

use std::cell::{Cell, RefCell};

/// The ports of all cores, with the first cycle in which each is free.
pub(crate) struct Issue {
    cores: usize,
    width: usize,
    ports: RefCell<Box<[u64]>>,
    issued: Cell<u64>,
}

impl Issue {
    /// Returns the ports of `cores` cores that issue `width` instructions a cycle.
    pub(crate) fn new(cores: usize, width: usize) -> Issue {
        Issue { cores, width, ports: RefCell::new(vec![0; cores * width].into()), issued: Cell::default() }
    }

    /// Returns the cycles in which a port was busy, the mean of all ports.
    pub(crate) fn busy(&self) -> u64 {
        self.issued.get().div_ceil((self.cores * self.width) as u64)
    }

    /// Issues instructions of a processor, one after another, from the card's cycle `cycle` on. Returns the cycles that they
    /// wait for a port.
    ///
    /// Processors with numbers that differ by the number of cores are threads of one core. Calls come in the order of
    /// their cycles.
    pub(crate) fn take(&self, processor: usize, cycle: u64, instructions: u64) -> u64 {
        let first = processor % self.cores * self.width;
        let ports = &mut self.ports.borrow_mut()[first..first + self.width];
        let port = ports.iter_mut().min().expect("a core has a port");
        let begin = cycle.max(*port);
        *port = begin + instructions;
        self.issued.set(self.issued.get() + instructions);
        begin - cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instructions_of_one_core_follow_one_another() {
        let issue = Issue::new(2, 1);
        assert_eq!(issue.take(0, 10, 5), 0);
        // Processor 2 is on the same core, and processor 1 on another one.
        assert_eq!(issue.take(1, 10, 5), 0);
        assert_eq!(issue.take(2, 10, 5), 5);
        assert_eq!(issue.take(0, 16, 1), 4);
        assert_eq!(issue.take(2, 100, 1), 0);
        // 5, 5, 5, 1 and 1 of two cores.
        assert_eq!(issue.busy(), 9);
    }

    #[test]
    fn two_ports_issue_side_by_side() {
        let issue = Issue::new(1, 2);
        let waits = [(0, 4), (0, 6), (0, 4), (0, 1)].map(|(cycle, length)| issue.take(0, cycle, length));
        assert_eq!(waits, [0, 0, 4, 6]);
    }

    proptest! {
        /// No more instructions issue in a time than ports have cycles, and no port is idle while an instruction waits.
        #[test]
        fn ports_issue_one_instruction_a_cycle(
            width in 1usize..4,
            runs in prop::collection::vec((0u64..20, 1u64..30), 1..100),
        ) {
            let issue = Issue::new(1, width);
            let (mut now, mut busy) = (0, vec![]);
            for (later, length) in runs {
                now += later;
                let begin = now + issue.take(0, now, length);
                let active = |cycle: u64| busy.iter().filter(|&&(from, to)| from <= cycle && cycle < to).count();
                prop_assert!((begin..begin + length).all(|cycle| active(cycle) < width));
                prop_assert!((now..begin).all(|cycle| active(cycle) == width));
                busy.push((begin, begin + length));
            }
        }
    }
}
