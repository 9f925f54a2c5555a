//! Host memory for the bytes of messages in flight. It stands for the memory of the process.
//!
//! Cards with RDMA cache a few address translations, so the pages of a message affect its time. A program that reuses a buffer
//! uses the same pages for many messages in flight. So each address of the program has its own host memory, if a message is
//! longer than a page. The host memory begins at the same offset in a page. Messages share host memory if they share the
//! program's memory.

use nicety::{Buffer, Error, Host};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Bytes of a page. A message of at most this length needs no host memory of its own address.
pub(super) const PAGE: u64 = 4096;
/// Maximum number of addresses with host memory of their own.
const MOST: usize = 1024;

/// Host memory for one message.
pub(super) struct StandIn {
    whole: Buffer,
    /// The part of the memory for the bytes of the message.
    pub(super) part: Buffer,
    /// The program's address to which the memory belongs, if any.
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
    /// The kind of operation that uses the memory now.
    what: Use,
    /// The sequence number of the last use, over all addresses.
    used: u64,
}

pub(super) struct StandIns {
    host: Host,
    has_pages: bool,
    named: RefCell<BTreeMap<u64, Named>>,
    uses: Cell<u64>,
    /// Free memory. The key is the logarithm of its length.
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

    /// Returns whether the pages of a message of `bytes` bytes affect its time.
    pub(super) const fn has_pages(&self, bytes: u64) -> bool {
        self.has_pages && bytes > PAGE
    }

    /// Returns memory that belongs to no address.
    pub(super) fn any(&self, bytes: u64) -> Result<StandIn, Error> {
        let whole = self.take(bytes)?;
        Ok(StandIn { part: whole.slice(0, bytes)?, whole, address: None })
    }

    /// Returns memory for a receive into the program's memory at this address.
    pub(super) fn of_receive(&self, address: u64, bytes: u64) -> Result<StandIn, Error> {
        if !self.has_pages(bytes) || !self.is_shared((address, bytes), Use::Receive) {
            return self.any(bytes);
        }
        self.named((address, bytes), Use::Receive)
    }

    /// Returns memory with these bytes, for a send from the program's memory at this address.
    pub(super) fn of_send(&self, address: u64, bytes: &[u8]) -> Result<StandIn, Error> {
        let length = bytes.len() as u64;
        let in_use = |own: &Named| own.users > 0;
        // The memory may have bytes in flight, which must not be overwritten.
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

    /// Returns whether the memory of an address is free, or large enough and used only by operations of the same kind.
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

    /// Gives back the memory of a message that is no longer in flight.
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
