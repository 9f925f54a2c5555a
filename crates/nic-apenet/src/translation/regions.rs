//! Registered memory: the table of the embedded processor. It takes no simulated time.
//!
//! A region belongs to one process, and may overlap other regions of the process. A transfer holds the region that
//! contains its bytes, so that a deregistration can wait for the transfer. No transfer begins in a region that is being
//! deregistered.

use crate::error::{ApenetError, Refusal};
use nicety_kernel::{Signal, Sim};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A registered region.
pub(crate) struct Registered {
    pub(crate) process: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Page size in bytes.
    pub(crate) page: u64,
    /// Whether the embedded processor has entered the region in its table.
    ready: Cell<bool>,
    /// Number of transfers from or to the region.
    users: Cell<u64>,
    /// Whether the region is being deregistered.
    ending: Cell<bool>,
    released: Signal,
}

impl Registered {
    /// Returns the number of pages of the region.
    pub(crate) const fn pages(&self) -> u64 {
        (self.address % self.page + self.bytes).div_ceil(self.page)
    }

    /// Allows transfers from and to the region.
    pub(crate) fn open(&self) {
        self.ready.set(true);
    }

    /// Returns the first addresses of the region's pages.
    pub(crate) fn page_addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let (first, page) = (self.address - self.address % self.page, self.page);
        (0..self.pages()).map(move |number| first + number * page)
    }
}

/// A transfer from or to a region. A drop of this value ends the transfer.
pub(crate) struct Hold(Rc<Registered>);

impl Drop for Hold {
    fn drop(&mut self) {
        let users = &self.0.users;
        users.set(users.get() - 1);
        if users.get() == 0 && self.0.ending.get() {
            self.0.released.notify_all();
        }
    }
}

/// All regions of a card.
pub(crate) struct Regions {
    sim: Sim,
    limit: u64,
    page_limit: u64,
    pages: Cell<u64>,
    next: Cell<u64>,
    /// Maps process, address and number of a region to the region.
    order: RefCell<BTreeMap<(u32, u64, u64), Rc<Registered>>>,
    regions: RefCell<BTreeMap<u64, Rc<Registered>>>,
}

impl Regions {
    pub(crate) fn new(sim: &Sim, limit: u64, page_limit: u64) -> Regions {
        Regions {
            sim: sim.clone(),
            limit,
            page_limit,
            pages: Cell::new(0),
            next: Cell::new(1),
            order: RefCell::default(),
            regions: RefCell::default(),
        }
    }

    /// Returns the number of regions and the number of pages at present.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.regions.borrow().len() as u64, self.pages.get())
    }

    /// Whether a process has any region.
    pub(crate) fn has_any(&self, process: u32) -> bool {
        self.order.borrow().range((process, 0, 0)..=(process, u64::MAX, u64::MAX)).next().is_some()
    }

    /// Enters a region, and returns the region's number. The region does not allow transfers yet. Numbers are never
    /// reused.
    ///
    /// # Errors
    /// When the region is empty, or the table has no room.
    pub(crate) fn enter(
        &self,
        process: u32,
        address: u64,
        bytes: u64,
        page: u64,
    ) -> Result<u64, ApenetError> {
        if bytes == 0 {
            return Err(ApenetError::Empty);
        }
        let region = Registered {
            process,
            address,
            bytes,
            page,
            ready: Cell::new(false),
            users: Cell::new(0),
            ending: Cell::new(false),
            released: Signal::new(&self.sim),
        };
        let (regions, left) = (self.size().0, self.page_limit - self.pages.get());
        if regions == self.limit {
            return Err(ApenetError::Regions { limit: self.limit });
        }
        let pages = region.pages();
        if pages > left {
            return Err(ApenetError::Pages { pages, left });
        }
        self.pages.set(self.pages.get() + pages);
        let number = self.next.replace(self.next.get() + 1);
        let region = Rc::new(region);
        self.order.borrow_mut().insert((process, address, number), region.clone());
        self.regions.borrow_mut().insert(number, region);
        Ok(number)
    }

    /// Returns the region of the process with this number.
    pub(crate) fn of(&self, process: u32, number: u64) -> Result<Rc<Registered>, ApenetError> {
        let found = self.regions.borrow().get(&number).filter(|region| region.process == process).cloned();
        found.ok_or(ApenetError::NoRegion { region: number })
    }

    /// Begins a deregistration: no further transfer of the region begins. Only one call can succeed for a region.
    pub(crate) fn end(&self, process: u32, number: u64) -> Result<Rc<Registered>, ApenetError> {
        let region = self.of(process, number)?;
        match region.ending.replace(true) {
            false => Ok(region),
            true => Err(ApenetError::NoRegion { region: number }),
        }
    }

    /// Waits for the transfers of a region that is being deregistered. Then removes the region.
    pub(crate) async fn remove(&self, number: u64, region: &Rc<Registered>) {
        region.released.wait_until(|| region.users.get() == 0).await;
        self.order.borrow_mut().remove(&(region.process, region.address, number));
        if self.regions.borrow_mut().remove(&number).is_some() {
            self.pages.set(self.pages.get() - region.pages());
        }
    }

    /// Begins a transfer of `bytes` bytes, at least 1, within one region of the process.
    ///
    /// # Errors
    /// When there is no such region.
    pub(crate) fn hold(&self, process: u32, address: u64, bytes: u64) -> Result<Hold, Refusal> {
        let end = address.checked_add(bytes).ok_or_else(|| self.reason(process, address, bytes))?;
        let order = self.order.borrow();
        let before =
            order.range((process, 0, 0)..=(process, address, u64::MAX)).rev().map(|(_, region)| region);
        let is_open = |region: &&Rc<Registered>| region.ready.get() && !region.ending.get();
        let holder = before.filter(is_open).find(|region| region.address + region.bytes >= end);
        let region = holder.ok_or_else(|| self.reason(process, address, bytes))?;
        region.users.set(region.users.get() + 1);
        Ok(Hold(region.clone()))
    }

    fn reason(&self, process: u32, address: u64, bytes: u64) -> Refusal {
        let foreign = self.regions.borrow().values().any(|region| {
            let end = region.address + region.bytes;
            region.process != process && region.address < address.saturating_add(bytes) && address < end
        });
        if foreign { Refusal::Foreign } else { Refusal::Unregistered }
    }
}
