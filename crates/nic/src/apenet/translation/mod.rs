//! Address translation: the TLB, and the embedded processor for its misses.
//!
//! The embedded processor serves one command at a time. Translations of packets wait for each other, and for
//! registrations.
//!
//! | file | contents |
//! |---|---|
//! | `tlb.rs` | the TLB, without time |
//! | `regions.rs` | registered memory: the processor's table, without time |
//! | `registration.rs` | registration and deregistration |

mod regions;
mod registration;
mod tlb;

pub(in crate::apenet) use regions::Hold;

use crate::apenet::error::Refusal;
use crate::apenet::{ApenetSpec, Card, stages};
use nicety_kernel::{Server, Sim};
use nicety_types::{Duration, Path, Stage};
use regions::Regions;
use std::cell::{Cell, RefCell};
use tlb::Tlb;

/// Translation on a card.
pub(in crate::apenet) struct Translation {
    pub(in crate::apenet) regions: Regions,
    tlb: RefCell<Tlb>,
    processor: Server,
    /// Busy time of the processor.
    busy: Cell<Duration>,
    /// Peak number of waiting commands.
    longest: Cell<usize>,
}

/// The bytes of a packet to read or write.
#[derive(Clone, Copy)]
pub(in crate::apenet) struct Range {
    pub(in crate::apenet) process: u32,
    pub(in crate::apenet) address: u64,
    /// At least one.
    pub(in crate::apenet) bytes: u64,
    /// First address and length of the whole message, which must be in one region.
    pub(in crate::apenet) message: (u64, u64),
    /// Whether the address is physical.
    pub(in crate::apenet) physical: bool,
}

impl Translation {
    pub(in crate::apenet) fn new(sim: &Sim, spec: &ApenetSpec) -> Translation {
        Translation {
            regions: Regions::new(sim, spec.limits.regions, spec.limits.pages),
            tlb: RefCell::new(Tlb::new(spec.tlb.entries)),
            processor: Server::new(sim),
            busy: Cell::default(),
            longest: Cell::default(),
        }
    }

    /// Busy time of the processor.
    pub(in crate::apenet) fn busy(&self) -> Duration {
        self.busy.get()
    }

    /// Peak number of commands waiting for the processor.
    pub(in crate::apenet) fn longest(&self) -> usize {
        self.longest.get()
    }
}

impl Card {
    /// Translates the pages of a packet's bytes. The region stays registered while the result is held.
    ///
    /// # Errors
    /// When the bytes of its message are not in a region of the process. A failed translation takes its time, too.
    pub(in crate::apenet) async fn translate(&self, range: Range, path: &mut Path) -> Result<Hold, Refusal> {
        let Range { process, address, bytes, message: (start, all), physical } = range;
        let regions = &self.translation.regions;
        if physical {
            return regions.hold(process, start, all);
        }
        let page = self.page(address);
        let mut at = address - address % page;
        let last = address.saturating_add(bytes - 1);
        loop {
            self.sim.delay(self.spec.tlb.lookup).await;
            path.advance(stages::TLB, self.sim.now());
            if self.translation.tlb.borrow_mut().look((process, at)) {
                self.count(|counted| counted.tlb_hits += 1);
            } else {
                self.count(|counted| counted.tlb_misses += 1);
                let time = self.spec.processor.translation;
                self.process(time, (stages::TRANSLATION, stages::TRANSLATION_QUEUED), path).await;
                // The region must be registered when the processor looks at its table. A deregistration may follow the
                // miss.
                drop(regions.hold(process, start, all)?);
                self.translation.tlb.borrow_mut().fill((process, at));
            }
            match at.checked_add(page) {
                Some(next) if next <= last => at = next,
                _ => return regions.hold(process, start, all),
            }
        }
    }

    /// Occupies the embedded processor for a command.
    pub(in crate::apenet) async fn process(
        &self,
        time: Duration,
        (stage, queued): (Stage, Stage),
        path: &mut Path,
    ) {
        let Translation { processor, busy, longest, .. } = &self.translation;
        longest.set(longest.get().max(processor.waiting() + usize::from(!processor.is_free())));
        let turn = processor.acquire().await;
        path.advance(queued, self.sim.now());
        self.sim.delay(time).await;
        path.advance(stage, self.sim.now());
        busy.set(busy.get() + time);
        drop(turn);
    }

    /// Enters the pages of a region into the TLB, as the embedded processor does when it registers it.
    pub(in crate::apenet) fn fill_tlb(&self, process: u32, pages: impl Iterator<Item = u64>) {
        let mut tlb = self.translation.tlb.borrow_mut();
        pages.for_each(|page| tlb.fill((process, page)));
    }

    /// Removes the pages of a region from the TLB. A page shared with another region is translated again on its next
    /// use.
    pub(in crate::apenet) fn clear_tlb(&self, process: u32, pages: impl Iterator<Item = u64>) {
        let mut tlb = self.translation.tlb.borrow_mut();
        pages.for_each(|page| tlb.forget((process, page)));
    }
}
