//! The memory that `send` and `recv` register: whole allocations. An allocation stays registered for further messages
//! until the card's table needs the room for another allocation.

use crate::error::ApenetError;
use crate::library::Process;
use crate::{Region, stages};
use nicety_kernel::{Server, Sim};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A registered allocation.
struct Leased {
    region: Region,
    /// Number of messages in transfer from or to the allocation.
    users: Cell<u64>,
    /// Number of the allocation's last use. Uses of all allocations are counted together.
    used: Cell<u64>,
}

/// A use of a registered allocation. While a lease exists, the allocation is not deregistered.
pub(crate) struct Lease(Rc<Leased>);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.users.set(self.0.users.get() - 1);
    }
}

/// The allocations of the library's host.
pub(crate) struct Leases {
    sim: Sim,
    process: Process,
    /// Maps the first address of an allocation to its size in bytes.
    own: RefCell<BTreeMap<u64, u64>>,
    /// Maps the first address of an allocation to the registered allocation.
    leased: RefCell<BTreeMap<u64, Rc<Leased>>>,
    uses: Cell<u64>,
    /// Held during a registration.
    registering: Server,
}

impl Leases {
    pub(crate) fn new(sim: &Sim, process: Process) -> Leases {
        Leases {
            sim: sim.clone(),
            process,
            own: RefCell::default(),
            leased: RefCell::default(),
            uses: Cell::new(0),
            registering: Server::new(sim),
        }
    }

    /// Adds host memory that messages may use.
    pub(crate) fn adopt(&self, address: u64, bytes: u64) {
        self.own.borrow_mut().insert(address, bytes);
    }

    /// Registers the allocation that contains these bytes, unless the allocation is registered already.
    ///
    /// # Errors
    /// When no allocation contains the bytes, or the card has no room beside the allocations in use.
    pub(crate) async fn lease(
        &self,
        address: u64,
        bytes: u64,
        path: &mut Path,
    ) -> Result<Lease, ApenetError> {
        let found = self.own.borrow().range(..=address).next_back().map(|(&start, &len)| (start, len));
        let (start, len) = found
            .filter(|(start, len)| bytes <= *len && address - start <= len - bytes)
            .ok_or(nicety_host::MemoryError::OutOfRange { address, len: bytes })?;
        let turn = self.registering.acquire().await;
        path.advance(stages::REGISTER_QUEUED, self.sim.now());
        let there = self.leased.borrow().get(&start).cloned();
        let leased = match there {
            Some(leased) => leased,
            None => {
                let region = self.register(start, len, path).await?;
                let leased = Rc::new(Leased { region, users: Cell::new(0), used: Cell::new(0) });
                self.leased.borrow_mut().insert(start, leased.clone());
                leased
            }
        };
        drop(turn);
        self.uses.set(self.uses.get() + 1);
        leased.used.set(self.uses.get());
        leased.users.set(leased.users.get() + 1);
        Ok(Lease(leased))
    }

    /// Registers an allocation. If the card has no room, first deregisters idle allocations, the least recently used
    /// first.
    async fn register(&self, start: u64, len: u64, path: &mut Path) -> Result<Region, ApenetError> {
        loop {
            let error = match self.process.register(start, len, path).await {
                Ok(region) => return Ok(region),
                Err(error @ (ApenetError::Regions { .. } | ApenetError::Pages { .. })) => error,
                Err(error) => return Err(error),
            };
            let idle = {
                let leased = self.leased.borrow();
                let idle = leased.iter().filter(|(_, leased)| leased.users.get() == 0);
                idle.min_by_key(|(_, leased)| leased.used.get())
                    .map(|(&start, leased)| (start, leased.region))
            };
            let Some((start, region)) = idle else { return Err(error) };
            self.leased.borrow_mut().remove(&start);
            self.process.deregister(region, path).await?;
        }
    }
}
