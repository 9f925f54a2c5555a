//! The limit of messages in flight on cards with limited descriptors, match entries and unexpected headers.
//!
//! A message is lost if the receiver's card cannot store another unexpected header. So each process counts its messages to and
//! from every other process. After each half of a window, the receiver sends a grant, which is a message of the library. A sender
//! with a whole window of messages in flight waits for a grant. Waiting sends continue in order.

use super::Program;
use crate::places::{Places, UNTAGGED};
use nicety::{Error, Host, Tags};
use nicety_kernel::Signal;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The tag of the library's own messages. Untagged messages of a program do not have it.
const GRANT: u64 = UNTAGGED | 1;
/// The smallest window. With many hosts, the sum of all windows may exceed the number of unexpected headers, as in MPI libraries.
/// This is safe as long as not all hosts send at once.
const LEAST: u64 = 512;
/// Descriptors and match entries that are reserved for registered memory and the library.
const RESERVED: u32 = 64;

/// The resources of the card that messages of a process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// Maximum messages to another process that are in flight without a grant.
    window: u64,
    /// Maximum sends that have a descriptor.
    sends: usize,
    /// Maximum receives that have a match entry.
    receives: usize,
}

impl Limits {
    /// Returns the limits; `None` on a card with a library that limits messages itself.
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

/// The messages to one other process.
#[derive(Default)]
struct Sent {
    sends: u64,
    /// The number of messages for which the other process has sent grants.
    granted: u64,
    waiting: VecDeque<Signal>,
    /// Whether the library has a receive for grants of the other process.
    is_heard: bool,
}

/// The counts of a process's messages in flight.
pub(crate) struct Window {
    limits: Option<Limits>,
    sent: RefCell<BTreeMap<u32, Sent>>,
    taken: RefCell<BTreeMap<u32, u64>>,
    /// The number of sends that have a descriptor, and the signals of sends that wait for one.
    sending: Cell<usize>,
    for_descriptor: RefCell<VecDeque<Signal>>,
    /// The number of receives that have a match entry.
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

    /// Returns whether all match entries for receives are in use.
    pub(crate) fn is_full(&self) -> bool {
        self.limits.is_some_and(|limits| self.receiving.get() >= limits.receives)
    }

    /// Counts a receive that takes a match entry.
    pub(crate) fn receives(&self) {
        self.receiving.set(self.receiving.get() + 1);
    }

    /// Counts a receive that gives back its match entry.
    pub(crate) fn received(&self) {
        self.receiving.set(self.receiving.get().saturating_sub(1));
    }

    /// Starts a send. Returns a signal if the send has to wait for a grant.
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

    /// Records a grant: another process has received `more` messages.
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

    /// Gives back the descriptor of a send. If a send waits for a descriptor, it gets this one.
    pub(crate) fn sent(&self) {
        match self.for_descriptor.borrow_mut().pop_front() {
            Some(next) => next.notify_all(),
            None => self.sending.set(self.sending.get().saturating_sub(1)),
        }
    }
}

impl Program {
    /// Waits until the process may send a message.
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

    /// Starts to receive the grants of another process, once half of the window is used.
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

    /// Records a message from another process. Sends a grant after each half of a window.
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
