//! Breakpoints and watchpoints.

use gdbstub::target::ext::breakpoints::WatchKind;
use nicety_hpu::NextAccess;
use std::collections::BTreeSet;

/// A watchpoint: bytes, and the kind of access that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watchpoint {
    pub(crate) address: u64,
    pub(crate) len: u64,
    pub(crate) kind: WatchKind,
}

/// The breakpoints and watchpoints of a debugger.
#[derive(Debug, Default)]
pub(crate) struct Breaks {
    now: Places,
    /// Those at the last continue of all cores. GDB removes some for the step of one core, and adds another behind its
    /// instruction; other cores must not pass the former meanwhile.
    settled: Places,
}

/// The addresses that stop.
#[derive(Clone, Debug, Default)]
struct Places {
    breakpoints: BTreeSet<u64>,
    watchpoints: Vec<Watchpoint>,
}

impl Breaks {
    /// Adds a breakpoint.
    pub(crate) fn add(&mut self, address: u64) {
        self.now.breakpoints.insert(address);
    }

    /// Removes a breakpoint. Returns whether it existed.
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        self.now.breakpoints.remove(&address)
    }

    /// All cores continue.
    pub(crate) fn settle(&mut self) {
        self.settled.clone_from(&self.now);
    }

    /// Whether an instruction at this address stops its core.
    pub(crate) fn stops(&self, pc: u32) -> bool {
        self.now.breakpoints.contains(&u64::from(pc))
    }

    /// Whether an instruction at this address stops its core while another one is in a step.
    pub(crate) fn holds(&self, pc: u32) -> bool {
        self.settled.breakpoints.contains(&u64::from(pc))
    }

    /// Adds a watchpoint.
    pub(crate) fn watch(&mut self, watchpoint: Watchpoint) {
        self.now.watchpoints.push(watchpoint);
    }

    /// Removes a watchpoint. Returns whether it existed.
    pub(crate) fn unwatch(&mut self, watchpoint: Watchpoint) -> bool {
        let found = self.now.watchpoints.iter().position(|other| *other == watchpoint);
        found.map(|index| self.now.watchpoints.remove(index)).is_some()
    }

    /// The watchpoints, or for a core beside the stepped one those before the step.
    fn watchpoints(&self, beside: bool) -> &[Watchpoint] {
        if beside { &self.settled.watchpoints } else { &self.now.watchpoints }
    }

    /// Whether a watchpoint exists, or for a core beside the stepped one has existed before the step.
    pub(crate) fn watches(&self, watchpoint: &Watchpoint, beside: bool) -> bool {
        self.watchpoints(beside).contains(watchpoint)
    }

    /// Whether there are watchpoints.
    pub(crate) fn is_watching(&self, beside: bool) -> bool {
        !self.watchpoints(beside).is_empty()
    }

    /// Returns the watchpoint that an access hits.
    pub(crate) fn hit(&self, access: &NextAccess, beside: bool) -> Option<Watchpoint> {
        let (start, end) = (u64::from(access.address), u64::from(access.address) + u64::from(access.size));
        let hits = |watchpoint: &&Watchpoint| {
            let kind = match watchpoint.kind {
                WatchKind::Write => access.writes,
                WatchKind::Read => access.reads,
                WatchKind::ReadWrite => true,
            };
            kind && start < watchpoint.address.saturating_add(watchpoint.len) && watchpoint.address < end
        };
        self.watchpoints(beside).iter().find(hits).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_before_a_step_hold_for_other_cores_in_it() {
        let mut breaks = Breaks::default();
        breaks.add(0x100);
        breaks.settle();
        assert!(breaks.remove(0x100) && !breaks.remove(0x100));
        breaks.add(0x104);
        assert!(!breaks.stops(0x100) && breaks.holds(0x100));
        assert!(breaks.stops(0x104) && !breaks.holds(0x104));
        breaks.settle();
        assert!(!breaks.holds(0x100) && breaks.holds(0x104));
    }

    #[test]
    fn an_access_hits_overlapping_bytes_of_its_kind() {
        let mut breaks = Breaks::default();
        let watchpoint = Watchpoint { address: 0x104, len: 4, kind: WatchKind::Write };
        breaks.watch(watchpoint);
        let access = |address, size, writes| NextAccess { address, size, writes, reads: !writes };
        assert_eq!(breaks.hit(&access(0x107, 1, true), false), Some(watchpoint));
        assert_eq!(breaks.hit(&access(0x102, 4, true), false), Some(watchpoint));
        assert_eq!(breaks.hit(&access(0x104, 4, false), false), None);
        assert_eq!(breaks.hit(&access(0x108, 4, true), false), None);
        assert_eq!(breaks.hit(&access(0x100, 4, true), false), None);
        breaks.settle();
        assert!(breaks.unwatch(watchpoint) && !breaks.is_watching(false));
        assert_eq!(breaks.hit(&access(0x104, 4, true), true), Some(watchpoint));
    }
}
