//! How many messages of a process may be under way, on cards whose descriptors, match entries and unexpected headers end.
//!
//! A library that goes on to send where the receiver's card has no room for one more header loses the message. So each process counts what
//! it has sent to each other, and what it has received of each: behind half a window the receiver tells the sender by a message of its
//! own, and a sender with a whole window in front of it waits for that. Sends that wait go on in their order.

use crate::places::Places;
use crate::rank::{Program, UNTAGGED};
use nicety::{Error, Host, Tags};
use nicety_kernel::Signal;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Tags of a library's own messages, which untagged ones of a program do not have.
const GRANT: u64 = UNTAGGED | 1;
/// The smallest window. With more hosts than this divides the unexpected headers for, hosts share them, as in MPI libraries: not all send at once.
const LEAST: u64 = 512;
/// Descriptors and entries that are left to registered memory and the library.
const RESERVED: u32 = 64;

/// The card's resources for the messages of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// Messages to another process that it has not said to have received.
    window: u64,
    /// Sends that have a descriptor.
    sends: usize,
    /// Receives that have an entry.
    receives: usize,
}

impl Limits {
    /// None on cards whose library waits by itself.
    fn of(host: &Host, places: Places) -> Option<Limits> {
        let limits = host.portals().ok()?.ni_limits();
        let (hosts, own) = (u64::from(host.ranks()), places.on_host());
        let share = |all: u32| (all.saturating_sub(RESERVED).max(all / 2) / own).max(1) as usize;
        let headers = u64::from(limits.unexpected_headers);
        let window =
            (headers / hosts.saturating_sub(1).max(1) / u64::from(own * own)).max(LEAST).min(headers);
        Some(Limits {
            window: window.max(2),
            sends: share(limits.descriptors),
            receives: share(limits.entries.min(limits.list_length)),
        })
    }
}

/// Messages sent to another process.
#[derive(Default)]
struct Sent {
    sends: u64,
    /// How many of them it may have been, by what the other has told.
    granted: u64,
    waiting: VecDeque<Signal>,
    /// Whether its messages about that are received.
    is_heard: bool,
}

/// The messages of a process that are under way.
pub(crate) struct Window {
    limits: Option<Limits>,
    sent: RefCell<BTreeMap<u32, Sent>>,
    taken: RefCell<BTreeMap<u32, u64>>,
    /// Sends with a descriptor, and those that wait for one.
    sending: Cell<usize>,
    for_descriptor: RefCell<VecDeque<Signal>>,
    /// Receives with an entry.
    receiving: Cell<usize>,
}

impl Window {
    pub(crate) fn new(host: &Host, places: Places) -> Window {
        Window {
            limits: Limits::of(host, places),
            sent: RefCell::default(),
            taken: RefCell::default(),
            sending: Cell::new(0),
            for_descriptor: RefCell::default(),
            receiving: Cell::new(0),
        }
    }

    /// Whether receives have all entries.
    pub(crate) fn is_full(&self) -> bool {
        self.limits.is_some_and(|limits| self.receiving.get() >= limits.receives)
    }

    /// A receive takes an entry.
    pub(crate) fn receives(&self) {
        self.receiving.set(self.receiving.get() + 1);
    }

    /// It has it no more.
    pub(crate) fn received(&self) {
        self.receiving.set(self.receiving.get().saturating_sub(1));
    }

    /// A send begins: the signal that it waits for, if it has to wait for the other process.
    fn begin(&self, to: u32, host: &Host, window: u64) -> Option<Signal> {
        let mut sent = self.sent.borrow_mut();
        let own = sent.entry(to).or_default();
        if own.waiting.is_empty() && own.sends < own.granted + window {
            own.sends += 1;
            return None;
        }
        let signal = host.signal();
        own.waiting.push_back(signal.clone());
        Some(signal)
    }

    /// Another process has received `more` messages.
    fn grant(&self, to: u32, more: u64, window: u64) {
        let mut sent = self.sent.borrow_mut();
        let own = sent.entry(to).or_default();
        own.granted += more;
        while own.sends < own.granted + window {
            let Some(signal) = own.waiting.pop_front() else { break };
            own.sends += 1;
            signal.notify_all();
        }
    }

    /// A send has a descriptor no more.
    pub(crate) fn sent(&self) {
        match self.for_descriptor.borrow_mut().pop_front() {
            Some(next) => next.notify_all(),
            None => self.sending.set(self.sending.get().saturating_sub(1)),
        }
    }
}

impl Program {
    /// Waits until a message may be sent.
    pub(crate) async fn may_send(self: &Rc<Self>, host: &Host, to: u32) -> Result<(), Error> {
        let Some(limits) = self.window.limits else { return Ok(()) };
        let waits = self.window.begin(to, host, limits.window);
        self.hear(to, limits.window);
        if let Some(signal) = waits {
            signal.wait().await;
        }
        if self.window.sending.get() < limits.sends {
            self.window.sending.set(self.window.sending.get() + 1);
            return Ok(());
        }
        let signal = host.signal();
        self.window.for_descriptor.borrow_mut().push_back(signal.clone());
        signal.wait().await;
        Ok(())
    }

    /// Receives what another process tells, once half of the window is used.
    fn hear(self: &Rc<Self>, to: u32, window: u64) {
        {
            let mut sent = self.window.sent.borrow_mut();
            let own = sent.entry(to).or_default();
            if own.is_heard || own.sends < window / 2 {
                return;
            }
            own.is_heard = true;
        }
        let own = self.clone();
        self.start(|host| async move {
            let room = own.byte()?;
            let tags = Tags { bits: own.places.between(to, own.rank, 0) | GRANT, ignore: 0 };
            loop {
                let pending = host.post_recv_matching(&room, Some(own.places.host(to)), tags).await?;
                host.arrived(pending).await?;
                own.window.grant(to, window / 2, window);
            }
        });
    }

    /// A message of another process has been received: tells that one behind half a window.
    pub(crate) fn has_received(self: &Rc<Self>, from: u32) {
        let Some(limits) = self.window.limits else { return };
        let count = {
            let mut taken = self.window.taken.borrow_mut();
            let count = taken.entry(from).or_default();
            *count += 1;
            *count
        };
        if count % (limits.window / 2) != 0 {
            return;
        }
        let own = self.clone();
        self.start(|host| async move {
            let tag = own.places.between(own.rank, from, 0) | GRANT;
            own.send_byte(&host, own.places.host(from), tag).await
        });
    }
}
