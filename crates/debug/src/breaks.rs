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
    breakpoints: BTreeSet<u64>,
    /// Breakpoints removed since the last continue. GDB removes them for a step over one of them; other cores must not
    /// pass them meanwhile.
    removed: BTreeSet<u64>,
    watchpoints: Vec<Watchpoint>,
}

impl Breaks {
    /// Adds a breakpoint.
    pub(crate) fn add(&mut self, address: u64) {
        self.breakpoints.insert(address);
    }

    /// Removes a breakpoint. Returns whether it existed.
    pub(crate) fn remove(&mut self, address: u64) -> bool {
        let found = self.breakpoints.remove(&address);
        if found {
            self.removed.insert(address);
        }
        found
    }

    /// Forgets removed breakpoints: all cores continue.
    pub(crate) fn forget_removed(&mut self) {
        self.removed.clear();
    }

    /// Whether an instruction at this address stops its core. With `stepping`, another core is in a single step.
    pub(crate) fn stops(&self, pc: u32, stepping: bool) -> bool {
        let pc = u64::from(pc);
        self.breakpoints.contains(&pc) || stepping && self.removed.contains(&pc)
    }

    /// Adds a watchpoint.
    pub(crate) fn watch(&mut self, watchpoint: Watchpoint) {
        self.watchpoints.push(watchpoint);
    }

    /// Removes a watchpoint. Returns whether it existed.
    pub(crate) fn unwatch(&mut self, watchpoint: Watchpoint) -> bool {
        let found = self.watchpoints.iter().position(|other| *other == watchpoint);
        found.map(|index| self.watchpoints.remove(index)).is_some()
    }

    /// Whether there are watchpoints.
    pub(crate) fn is_watching(&self) -> bool {
        !self.watchpoints.is_empty()
    }

    /// Returns the watchpoint that an access hits.
    pub(crate) fn hit(&self, access: &NextAccess) -> Option<Watchpoint> {
        let (start, end) = (u64::from(access.address), u64::from(access.address) + u64::from(access.size));
        let hits = |watchpoint: &&Watchpoint| {
            let kind = match watchpoint.kind {
                WatchKind::Write => access.writes,
                WatchKind::Read => access.reads,
                WatchKind::ReadWrite => true,
            };
            kind && start < watchpoint.address.saturating_add(watchpoint.len) && watchpoint.address < end
        };
        self.watchpoints.iter().find(hits).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_breakpoints_hold_for_other_cores_during_a_step() {
        let mut breaks = Breaks::default();
        breaks.add(0x100);
        assert!(breaks.stops(0x100, false) && breaks.remove(0x100) && !breaks.remove(0x100));
        assert!(!breaks.stops(0x100, false) && breaks.stops(0x100, true));
        breaks.forget_removed();
        assert!(!breaks.stops(0x100, true));
    }

    #[test]
    fn an_access_hits_overlapping_bytes_of_its_kind() {
        let mut breaks = Breaks::default();
        let watchpoint = Watchpoint { address: 0x104, len: 4, kind: WatchKind::Write };
        breaks.watch(watchpoint);
        let access = |address, size, writes| NextAccess { address, size, writes, reads: !writes };
        assert_eq!(breaks.hit(&access(0x107, 1, true)), Some(watchpoint));
        assert_eq!(breaks.hit(&access(0x102, 4, true)), Some(watchpoint));
        assert_eq!(breaks.hit(&access(0x104, 4, false)), None);
        assert_eq!(breaks.hit(&access(0x108, 4, true)), None);
        assert_eq!(breaks.hit(&access(0x100, 4, true)), None);
        assert!(breaks.unwatch(watchpoint) && !breaks.is_watching());
    }
}
