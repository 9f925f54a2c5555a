//! Registration: a system call that locks pages, and the work of the embedded processor to enter the pages in its
//! table.

use crate::error::ApenetError;
use crate::translation::regions::Registered;
use crate::{Card, Region, stages};
use nicety_types::{Path, Stage};
use std::rc::Rc;

const REGISTER: (Stage, Stage) = (stages::REGISTER, stages::REGISTER_QUEUED);

/// A registration in progress. A drop of this guard with a region undoes the registration.
struct Begun<'c> {
    card: &'c Rc<Card>,
    region: Option<Region>,
    /// Number of pages that are locked, or being locked.
    pinned: u64,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if let Some(region) = self.region {
            let (card, pinned) = (self.card.clone(), self.pinned);
            self.card.sim.spawn(async move {
                if let Ok(registered) = card.translation.regions.end(region.process, region.number) {
                    card.translation.regions.remove(region.number, &registered).await;
                }
                if pinned > 0 {
                    card.kernel.unpin(pinned, &mut Path::from(card.sim.now())).await;
                }
            });
        }
    }
}

impl Card {
    /// Registers memory as part of set-up, with the effects of [`Card::register`] but without simulated time.
    pub(crate) fn set_up_region(
        &self,
        process: u32,
        address: u64,
        bytes: u64,
    ) -> Result<Region, ApenetError> {
        let region = self.enter_region(process, address, bytes)?;
        self.open_region(&*self.translation.regions.of(process, region.number)?);
        Ok(region)
    }

    /// Enters the pages of a region into the TLB, and allows transfers. If the TLB has fewer entries than the region
    /// has pages, only the last pages stay.
    fn open_region(&self, registered: &Registered) {
        let skipped = registered.pages().saturating_sub(self.spec.tlb.entries as u64) as usize;
        self.fill_tlb(registered.process, registered.page_addresses().skip(skipped));
        registered.open();
    }

    fn enter_region(&self, process: u32, address: u64, bytes: u64) -> Result<Region, ApenetError> {
        self.dma.check(address, bytes)?;
        let number = self.translation.regions.enter(process, address, bytes, self.page(address))?;
        Ok(Region { number, process, address, bytes })
    }

    /// Registers memory of a process.
    pub(crate) async fn register(
        self: &Rc<Card>,
        process: u32,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<Region, ApenetError> {
        let region = self.enter_region(process, address, bytes)?;
        let mut begun = Begun { card: self, region: Some(region), pinned: 0 };
        let registered = self.translation.regions.of(process, region.number)?;
        self.kernel.call(path).await;
        begun.pinned = registered.pages();
        self.kernel.pin(registered.pages(), path).await;
        self.command(registered.pages(), path).await;
        self.open_region(&registered);
        self.count(|counted| counted.registrations += 1);
        begun.region = None;
        Ok(region)
    }

    /// Ends a registration. The call waits for active transfers of the region. Later messages to the region are
    /// refused.
    pub(crate) async fn deregister(
        self: &Rc<Card>,
        region: Region,
        path: &mut Path,
    ) -> Result<(), ApenetError> {
        let Region { number, process, .. } = region;
        let registered = self.translation.regions.end(process, number)?;
        self.forget_streaming(process);
        let (card, pages) = (self.clone(), registered.pages());
        // A deregistration cannot be undone. It completes even if the program stops waiting for it.
        let done = nicety_kernel::Signal::new(&self.sim);
        let ended: Rc<std::cell::RefCell<Option<Path>>> = Rc::default();
        let (signal, end, mut own) = (done.clone(), ended.clone(), path.clone());
        self.sim.spawn(async move {
            card.kernel.call(&mut own).await;
            card.clear_tlb(process, registered.page_addresses());
            card.command(pages, &mut own).await;
            card.translation.regions.remove(number, &registered).await;
            own.advance(stages::REGISTER_QUEUED, card.sim.now());
            card.kernel.unpin(pages, &mut own).await;
            end.replace(Some(own));
            signal.notify_all();
        });
        done.wait_until(|| ended.borrow().is_some()).await;
        if let Some(own) = ended.take() {
            *path = own;
        }
        Ok(())
    }

    /// Gives the embedded processor a command for `pages` pages, and waits until the processor has executed it.
    async fn command(&self, pages: u64, path: &mut Path) {
        let message = self.next_message();
        let landed = self.write_register(path, message).await;
        self.sim.until(landed).await;
        path.advance(Stage::BUS, landed);
        let time = self.spec.processor.register + self.spec.processor.page * pages;
        self.process(time, REGISTER, path).await;
        let answer =
            self.dma.notify(message, self.event_ring.address(), self.spec.ring.doorbell, path.clone());
        self.sim.until(answer.at()).await;
        *path = answer;
        self.kernel.cpus().notice(path, Some(message)).await;
    }
}
