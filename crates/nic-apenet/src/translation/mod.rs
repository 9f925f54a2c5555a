//! Address translation: the TLB, and the embedded processor for TLB misses.
//!
//! The embedded processor serves one command at a time. Translations of packets wait for each other, and for
//! registrations.
//!
//! | file | contents |
//! |---|---|
//! | `tlb.rs` | the TLB, without simulated time |
//! | `regions.rs` | registered memory: the processor's table, without simulated time |
//! | `registration.rs` | registration and deregistration |

mod regions;
mod registration;
mod tlb;

pub(crate) use regions::Hold;

use crate::error::Refusal;
use crate::{ApenetSpec, Card, stages};
use nicety_kernel::{Server, Sim};
use nicety_types::{Duration, Path, Stage};
use regions::Regions;
use std::cell::{Cell, RefCell};
use tlb::Tlb;

/// The translation unit of a card.
pub(crate) struct Translation {
    pub(crate) regions: Regions,
    tlb: RefCell<Tlb>,
    processor: Server,
    /// Busy time of the embedded processor.
    busy: Cell<Duration>,
    /// Peak number of commands that waited for the embedded processor.
    longest: Cell<usize>,
}

/// The bytes of a packet that the card reads or writes.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) process: u32,
    pub(crate) address: u64,
    /// Number of bytes, at least 1.
    pub(crate) bytes: u64,
    /// First address and size in bytes of the whole message, which must lie in one region.
    pub(crate) message: (u64, u64),
    /// Whether the address is physical.
    pub(crate) physical: bool,
}

impl Translation {
    pub(crate) fn new(sim: &Sim, spec: &ApenetSpec) -> Translation {
        Translation {
            regions: Regions::new(sim, spec.limits.regions, spec.limits.pages),
            tlb: RefCell::new(Tlb::new(spec.tlb.entries)),
            processor: Server::new(sim),
            busy: Cell::default(),
            longest: Cell::default(),
        }
    }

    /// Returns the busy time of the embedded processor.
    pub(crate) fn busy(&self) -> Duration {
        self.busy.get()
    }

    /// Returns the peak number of commands that waited for the embedded processor.
    pub(crate) fn longest(&self) -> usize {
        self.longest.get()
    }
}

impl Card {
    /// Translates the pages with a packet's bytes. The region stays registered while the returned [`Hold`] exists.
    ///
    /// # Errors
    /// When the bytes of the whole message are not in one region of the process. A failed translation takes the same
    /// simulated time as a successful one.
    pub(crate) async fn translate(&self, range: Range, path: &mut Path) -> Result<Hold, Refusal> {
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
                // The region must be registered when the processor looks into its table. It may have been deregistered
                // since the miss.
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
    pub(crate) async fn process(&self, time: Duration, (stage, queued): (Stage, Stage), path: &mut Path) {
        let Translation { processor, busy, longest, .. } = &self.translation;
        longest.set(longest.get().max(processor.waiting() + usize::from(!processor.is_free())));
        let turn = processor.acquire().await;
        path.advance(queued, self.sim.now());
        self.sim.delay(time).await;
        path.advance(stage, self.sim.now());
        busy.set(busy.get() + time);
        drop(turn);
    }

    /// Enters the pages of a region into the TLB, as the embedded processor does at the region's registration.
    pub(crate) fn fill_tlb(&self, process: u32, pages: impl Iterator<Item = u64>) {
        let mut tlb = self.translation.tlb.borrow_mut();
        pages.for_each(|page| tlb.fill((process, page)));
    }

    /// Removes the pages of a region from the TLB. A page that another region shares is translated again at its next
    /// use.
    pub(crate) fn clear_tlb(&self, process: u32, pages: impl Iterator<Item = u64>) {
        let mut tlb = self.translation.tlb.borrow_mut();
        pages.for_each(|page| tlb.forget((process, page)));
    }
}
