//! DMA at the memory of a cluster. Each beat occupies a group of its banks for a cycle, in which cores wait for the
//! group.
//!
//! This follows PsPIN's L1. Its 64 word-wide banks form four groups, each as wide as a beat. Consecutive beats of
//! addresses are in consecutive groups. Two ports move beats: one for the cluster's DMA engine and one for commands.
//! Both take precedence over the cores. Where both ports need the same group, one of them is a cycle later.

use crate::pspin::lanes::Lane;
use crate::spec::{PacketsSpec, pspin_map as map};
use nicety_hpu::{Dma, Origin};
use std::cell::RefCell;

/// Cycles that are kept: those of a slice, and those for which beats are known in advance.
const CYCLES: usize = 4096;

/// The groups of banks that beats occupy in a cycle of the card, one bit each.
#[derive(Clone, Copy, Debug)]
struct Taken {
    cycle: u64,
    groups: u64,
}

/// The known beats at the memory of a cluster.
pub struct Ports {
    /// Groups of banks. Zero where DMA does not contend with cores.
    groups: u64,
    beat: u64,
    /// Cycles for which beats are known in advance: a copy that begins now moves its first beat this much later.
    pub(crate) known: u64,
    /// The beats by cycle, modulo the table's length. Empty until the first beat.
    taken: RefCell<Vec<Taken>>,
    /// The port of the card's engines. It moves one beat a cycle in either direction.
    port: Lane,
}

impl Ports {
    pub(crate) fn new(spec: &PacketsSpec) -> Ports {
        Ports {
            groups: spec.bank_groups,
            beat: spec.beat,
            known: spec.copy,
            taken: RefCell::default(),
            port: Lane::default(),
        }
    }

    /// Returns whether cores wait for DMA.
    pub(crate) const fn are_shared(&self) -> bool {
        self.groups > 0
    }

    /// Returns the bytes of a beat.
    pub(crate) const fn beat(&self) -> u64 {
        self.beat
    }

    /// Returns the group of banks of a transfer's beat. The transfer begins at `address`.
    const fn group(&self, address: u32, beat: u64) -> u64 {
        (address as u64 / self.beat + beat) % self.groups
    }

    /// Returns whether the engines' port can move this beat of a transfer at `address` in this cycle.
    pub(crate) fn is_free(&self, cycle: u64, address: u32, beat: u64) -> bool {
        let group_is_free =
            || !self.are_shared() || !is_taken(&self.taken.borrow(), cycle, self.group(address, beat));
        !self.port.is_taken(cycle) && group_is_free()
    }

    /// Moves a beat of a transfer at `address` over the engines' port in this cycle.
    pub fn take(&self, cycle: u64, address: u32, beat: u64) {
        if beat == 0 {
            self.port.forget_before(cycle);
        }
        self.port.take(cycle);
        if self.are_shared() {
            note(&mut self.taken.borrow_mut(), cycle, self.group(address, beat));
        }
    }

    /// Returns whether the engines' port moves a beat in this cycle.
    #[cfg(test)]
    pub(crate) fn is_busy(&self, cycle: u64) -> bool {
        self.port.is_taken(cycle)
    }

    /// Moves `bytes` bytes at `address`, one beat a cycle from cycle `start` on, or slightly later where other beats
    /// need the same groups.
    pub(crate) fn move_at(&self, start: u64, address: u32, bytes: u64) {
        if !self.are_shared() {
            return;
        }
        let taken = &mut *self.taken.borrow_mut();
        // A longer transfer than the table records only its first beats.
        let beats = bytes.div_ceil(self.beat).min(CYCLES as u64);
        let meets = |later: &u64| {
            (0..beats).any(|beat| is_taken(taken, start + later + beat, self.group(address, beat)))
        };
        let later = (0..self.groups).find(|later| !meets(later)).unwrap_or(0);
        for beat in 0..beats {
            note(taken, start + later + beat, self.group(address, beat));
        }
    }

    /// Returns the cycles for which an access in this cycle waits.
    pub fn wait(&self, cycle: u64, address: u32) -> u32 {
        let taken = self.taken.borrow();
        let group = u64::from(address) / self.beat % self.groups;
        let mut waits = 0;
        while is_taken(&taken, cycle + u64::from(waits), group) {
            waits += 1;
        }
        waits
    }
}

/// Notes that a beat occupies a group in a cycle.
fn note(taken: &mut Vec<Taken>, cycle: u64, group: u64) {
    if taken.is_empty() {
        taken.resize(CYCLES, Taken { cycle: u64::MAX, groups: 0 });
    }
    let place = &mut taken[cycle as usize % CYCLES];
    if place.cycle != cycle {
        *place = Taken { cycle, groups: 0 };
    }
    place.groups |= 1 << group;
}

fn is_taken(taken: &[Taken], cycle: u64, group: u64) -> bool {
    taken.get(cycle as usize % CYCLES).is_some_and(|at| at.cycle == cycle && at.groups >> group & 1 == 1)
}

/// An access of a slice with a wait that is not known yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    cycle: u64,
    address: u32,
    origin: Origin,
}

/// A handler slice's view of its cluster's ports.
pub(crate) struct SeenPorts<'p> {
    pub(crate) ports: &'p Ports,
    /// The card's cycle at the run's cycle 0.
    pub(crate) base: u64,
    /// The run's cycle up to which beats are known. Later accesses are noted.
    pub(crate) known: u64,
    pub(crate) accesses: RefCell<&'p mut Vec<Access>>,
}

impl Dma for SeenPorts<'_> {
    fn wait(&self, cycle: u64, address: u32, origin: Origin) -> u32 {
        if cycle <= self.known {
            return self.ports.wait(self.base.wrapping_add(cycle), address);
        }
        self.accesses.borrow_mut().push(Access { cycle, address, origin });
        0
    }
}

/// The waits of a slice's accesses, once they are known. A wait delays the accesses behind it.
#[derive(Default)]
pub(crate) struct Settling {
    /// Number of settled accesses, and the sum of their waits in cycles.
    settled: usize,
    pub(crate) waited: u64,
}

impl Settling {
    /// Settles accesses of a run as far as beats are known at the card's cycle `now`. `base` is the card's cycle at
    /// the run's cycle
    /// 0. Returns whether all accesses are settled. Calls `waits` for those that wait, with their cycles.
    pub(crate) fn settle(
        &mut self,
        ports: &Ports,
        base: u64,
        now: u64,
        accesses: &[Access],
        mut waits: impl FnMut(Origin, u64),
    ) -> bool {
        for access in &accesses[self.settled..] {
            let cycle = access.cycle + self.waited;
            if cycle > now + ports.known {
                return false;
            }
            let waited = u64::from(ports.wait(base.wrapping_add(cycle), access.address));
            if waited > 0 {
                waits(access.origin, waited);
            }
            self.waited += waited;
            self.settled += 1;
        }
        true
    }
}

/// Returns the cluster of an L1 address of a handler written for PsPIN. None outside L1.
pub(crate) const fn cluster_at(address: u32) -> Option<usize> {
    match address.checked_sub(map::L1) {
        Some(offset) if offset < map::CLUSTERS as u32 * map::L1_EACH => {
            Some((offset / map::L1_EACH) as usize)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn ports() -> Ports {
        Ports { groups: 4, beat: 64, known: 16, taken: RefCell::default(), port: Lane::default() }
    }

    #[test]
    fn an_access_waits_for_beats_to_its_group() {
        let ports = ports();
        assert_eq!(ports.wait(10, 64), 0, "nothing is moved");
        // Beats of groups 1, 2, 3, 0, 1 at cycles 10 to 14.
        ports.move_at(10, 64, 5 * 64);
        assert_eq!([9, 10, 11, 14, 15].map(|cycle| ports.wait(cycle, 64)), [0, 1, 0, 1, 0]);
        assert_eq!([10, 12, 13].map(|cycle| ports.wait(cycle, 3 * 64 + 60)), [0, 1, 0]);
        // Beats that need the same groups are a cycle later: group 1 at 11, 2 at 12.
        ports.move_at(10, 5 * 64, 2 * 64);
        assert_eq!([10, 11].map(|cycle| ports.wait(cycle, 64)), [2, 1]);
        assert_eq!([11, 12, 13].map(|cycle| ports.wait(cycle, 128)), [2, 1, 0]);
        // A cycle is forgotten when another cycle takes its entry.
        ports.move_at(10 + CYCLES as u64, 0, 1);
        assert_eq!(ports.wait(10, 64), 0);
        ports.move_at(30, 0, 0);
        assert_eq!(ports.wait(30, 0), 0, "no bytes, no beat");
        // A transfer longer than the table: its next cycles are known.
        ports.move_at(10_001, 64, 3 * 64 * CYCLES as u64);
        assert_eq!([10_001, 10_002, 10_005].map(|cycle| ports.wait(cycle, 64)), [1, 0, 1]);
    }

    #[test]
    fn accesses_beyond_what_is_known_are_settled_when_it_is() {
        let ports = ports();
        ports.move_at(110, 0, 1);
        let mut accesses = Vec::new();
        let seen = SeenPorts { ports: &ports, base: 100, known: 16, accesses: RefCell::new(&mut accesses) };
        assert_eq!(
            [9, 10, 17, 18, 40].map(|cycle| Dma::wait(&seen, cycle, 0, Origin::default())),
            [0, 1, 0, 0, 0]
        );
        // More beats are known by now. The access at 17 waits until 19. The access at 18 moves to 20 and waits for
        // one cycle. The access at 40 moves to 43.
        for cycle in [117, 118, 120, 140, 143] {
            ports.move_at(cycle, 0, 1);
        }
        let mut settling = Settling::default();
        let noted = |_, _| ();
        assert!(!settling.settle(&ports, 100, 18, &accesses, noted), "what comes at 43 is not known at 18");
        assert_eq!(settling.waited, 3);
        assert!(!settling.settle(&ports, 100, 26, &accesses, noted));
        assert!(settling.settle(&ports, 100, 27, &accesses, noted));
        assert_eq!(settling.waited, 4);
    }

    #[test]
    fn l1_is_that_of_a_cluster() {
        assert_eq!(cluster_at(map::L1 - 1), None);
        assert_eq!(cluster_at(map::L1 + map::L1_EACH - 1), Some(0));
        assert_eq!(cluster_at(map::pad(3)), Some(3));
        assert_eq!(cluster_at(map::HARDWARE), None);
    }

    proptest! {
        /// Two streams of beats never occupy a group at once. This delays the second by at most three cycles. An
        /// access waits for the first cycle without a beat in its group.
        #[test]
        fn accesses_wait_for_the_first_free_cycle(
            first in (0u64..20, 0u32..2048, 1u64..1200),
            second in (0u64..20, 0u32..2048, 1u64..1200),
            cycle in 0u64..60,
            address in 0u32..4096,
        ) {
            let beats = |(start, address, bytes): (u64, u32, u64), later: u64| {
                (0..bytes.div_ceil(64)).map(move |beat| (start + later + beat, (u64::from(address) / 64 + beat) % 4))
            };
            let before: Vec<_> = beats(first, 0).collect();
            let later = (0..4).find(|&later| beats(second, later).all(|beat| !before.contains(&beat))).unwrap();
            let all: Vec<_> = beats(second, later).chain(before).collect();
            let group = u64::from(address) / 64 % 4;
            let free = (cycle..).find(|&cycle| !all.contains(&(cycle, group))).unwrap();

            let ports = ports();
            for (start, address, bytes) in [first, second] {
                ports.move_at(start, address, bytes);
            }
            prop_assert_eq!(u64::from(ports.wait(cycle, address)), free - cycle);
        }
    }
}
