//! Host memory in place of a process's, for the bytes of messages in flight.
//!
//! Cards with RDMA cache a few address translations, so the pages of a message matter. A program that reuses one buffer uses the same pages
//! for any number of messages in flight. So memory for a message of more than a page is found by the program's address. It begins at the
//! same offset in a page, and is shared as the program shares its own.

use nicety::{Buffer, Error, Host};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Bytes of a page, and the longest message for which pages do not matter.
pub(super) const PAGE: u64 = 4096;
/// The most addresses with memory.
const MOST: usize = 1024;

/// Memory for one message.
pub(super) struct StandIn {
    whole: Buffer,
    /// The part for its bytes.
    pub(super) part: Buffer,
    /// The program's address by which it is found.
    address: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Send,
    Receive,
}

struct Named {
    whole: Buffer,
    users: u32,
    /// The users' kind.
    what: Use,
    /// The number of the last use, among all uses.
    used: u64,
}

pub(super) struct StandIns {
    host: Host,
    has_pages: bool,
    named: RefCell<BTreeMap<u64, Named>>,
    uses: Cell<u64>,
    /// Free memory, by the logarithm of its size.
    free: RefCell<BTreeMap<u32, Vec<Buffer>>>,
}

impl StandIns {
    pub(super) fn new(host: &Host) -> StandIns {
        StandIns {
            host: host.clone(),
            has_pages: host.rdma().is_ok(),
            named: RefCell::default(),
            uses: Cell::new(0),
            free: RefCell::default(),
        }
    }

    /// Returns whether pages matter to the card for a message of `bytes` bytes.
    pub(super) const fn has_pages(&self, bytes: u64) -> bool {
        self.has_pages && bytes > PAGE
    }

    /// Returns memory without an address.
    pub(super) fn any(&self, bytes: u64) -> Result<StandIn, Error> {
        let whole = self.take(bytes)?;
        Ok(StandIn { part: whole.slice(0, bytes)?, whole, address: None })
    }

    /// Returns the memory for a receive of the program at this address.
    pub(super) fn of_receive(&self, address: u64, bytes: u64) -> Result<StandIn, Error> {
        if !self.has_pages(bytes) || !self.is_shared((address, bytes), Use::Receive) {
            return self.any(bytes);
        }
        self.named((address, bytes), Use::Receive)
    }

    /// Returns the memory for a send of these bytes, which the program has at this address.
    pub(super) fn of_send(&self, address: u64, bytes: &[u8]) -> Result<StandIn, Error> {
        let length = bytes.len() as u64;
        let in_use = |own: &Named| own.users > 0;
        // Bytes in flight from there must not be overwritten.
        let differs = || {
            let there =
                self.named.borrow().get(&address).filter(|own| in_use(own)).map(|own| own.whole.clone());
            there.is_some_and(|whole| whole.read(address % PAGE, length) != bytes)
        };
        let is_named = self.has_pages(length) && self.is_shared((address, length), Use::Send) && !differs();
        let own = if is_named { self.named((address, length), Use::Send)? } else { self.any(length)? };
        if !bytes.is_empty() {
            own.part.write(0, bytes);
        }
        Ok(own)
    }

    /// Returns whether the memory of an address can be used, alone or together with other messages of the same kind.
    fn is_shared(&self, (address, bytes): (u64, u64), what: Use) -> bool {
        let named = self.named.borrow();
        let room = |own: &Named| own.whole.len() >= address % PAGE + bytes;
        named.get(&address).is_none_or(|own| own.users == 0 || (own.what == what && room(own)))
    }

    fn named(&self, (address, bytes): (u64, u64), what: Use) -> Result<StandIn, Error> {
        let offset = address % PAGE;
        let mut named = self.named.borrow_mut();
        if let Some(own) = named.get(&address).filter(|own| own.whole.len() < offset + bytes) {
            self.put_back(own.whole.clone());
            named.remove(&address);
        }
        if !named.contains_key(&address) {
            let idle = named.iter().filter(|(_, own)| own.users == 0).min_by_key(|(_, own)| own.used);
            if let Some(oldest) = idle.map(|(&address, _)| address).filter(|_| named.len() >= MOST) {
                named.remove(&oldest).into_iter().for_each(|own| self.put_back(own.whole));
            }
            let whole = self.take(offset + bytes)?;
            named.insert(address, Named { whole, users: 0, what, used: 0 });
        }
        let own = named.get_mut(&address).expect("it is there");
        self.uses.set(self.uses.get() + 1);
        (own.users, own.what, own.used) = (own.users + 1, what, self.uses.get());
        Ok(StandIn {
            whole: own.whole.clone(),
            part: own.whole.slice(offset, bytes)?,
            address: Some(address),
        })
    }

    /// Returns the memory of a message that is no longer in flight.
    pub(super) fn give_back(&self, own: StandIn) {
        match own.address {
            Some(address) => {
                if let Some(named) = self.named.borrow_mut().get_mut(&address) {
                    named.users -= 1;
                }
            }
            None => self.put_back(own.whole),
        }
    }

    fn take(&self, bytes: u64) -> Result<Buffer, Error> {
        let class = bytes.max(64).next_power_of_two().ilog2();
        let free = self.free.borrow_mut().get_mut(&class).and_then(Vec::pop);
        free.map_or_else(|| self.host.alloc(1 << class), Ok)
    }

    fn put_back(&self, whole: Buffer) {
        let class = whole.len().ilog2();
        self.free.borrow_mut().entry(class).or_default().push(whole);
    }
}
