//! Work of a host for frames: the busy time and the number of frames of each part that takes frames one after another.

use crate::net::Net;
use nicety_types::Duration;
use std::collections::BTreeSet;

/// A part of a host that takes frames one after another: a CPU with the interrupts of receive channels, or a soft ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWork {
    /// The part's name, such as `CPU 3`.
    pub name: String,
    /// The part's CPU time.
    pub busy: Duration,
    /// Number of frames taken in that time.
    pub taken: u64,
    /// Number of frames that arrived for the part: those taken, and those dropped before.
    pub came: u64,
}

/// Bus time of frames for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForHost {
    /// Bus time of frames that went to host memory.
    pub carried: Duration,
    /// Bus time of frames without a buffer in host memory.
    pub left_out: Duration,
}

impl Net {
    /// Returns the work of each part of the host.
    pub(super) fn work(&self) -> Vec<HostWork> {
        let (interrupts, rings) = (&self.spec.interrupts, &self.card.receive);
        let threads = self.interrupted.borrow();
        let of_cpu = |cpu: usize| {
            let is_own = |&(number, _): &(usize, _)| interrupts.cpu(number) == cpu;
            let own = || rings.iter().enumerate().filter(is_own).map(|(_, ring)| ring);
            let taken = own().map(|ring| ring.frames.get()).sum();
            HostWork {
                name: format!("CPU {cpu}"),
                busy: threads.iter().filter(|(of, _)| *of == cpu).map(|(_, thread)| thread.busy()).sum(),
                taken,
                came: taken + own().map(|ring| ring.missed.get()).sum::<u64>(),
            }
        };
        let cpus: BTreeSet<usize> = (0..interrupts.cpus).map(|number| interrupts.cpu(number)).collect();
        let mut work: Vec<HostWork> = cpus.into_iter().map(of_cpu).collect();
        let sum = |of: fn(&HostWork) -> u64| work.iter().map(of).sum::<u64>();
        let (taken, came) = (u128::from(sum(|cpu| cpu.taken)).max(1), u128::from(sum(|cpu| cpu.came)));
        let of_ring = |(number, ring): (usize, &crate::net::softrings::SoftRing)| {
            let pushed = u128::from(ring.taken.get() + ring.dropped.get());
            HostWork {
                name: format!("soft ring {number}"),
                busy: ring.thread.busy(),
                taken: ring.taken.get(),
                // Of the frames that found no buffer, a share in proportion to the ring's other frames would have
                // arrived here.
                came: (pushed * came / taken) as u64,
            }
        };
        work.extend(self.rings.iter().enumerate().map(of_ring));
        work
    }
}
