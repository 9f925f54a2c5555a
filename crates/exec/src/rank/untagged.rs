//! Untagged receives of a process that has posted a buffer for many messages (FI_MULTI_RECV). The library matches these receives.
//!
//! A card puts each message into a separate buffer. So the library posts a few receives on the host, as long as the longest
//! receive of the process. It copies each message to the first receive of the process that accepts the message. A buffer for many
//! messages is returned to the program when fewer bytes are left than the program's minimum (FI_OPT_MIN_MULTI_RECV).

use super::{ArrivedMessage, Held, Program, StandIn};
use crate::pages::rank_or_any;
use crate::places::DATA_BYTES;
use crate::protocol::{ANY, Completion, Receive, done, flag};
use nicety::{Error, Host, PendingRecv, Received};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Number of host receives for each buffer for many messages. It includes messages that no receive of the process has taken.
const AT_ONCE: usize = 4;

/// Maximum bytes of a message for a buffer for many messages. Some cards accept no messages of 2 MiB or more.
const LONGEST_OF_MANY: u64 = 1 << 20;

/// A receive of the process.
struct Waiting {
    receive: Receive,
    /// The receive's operation in the log.
    op: Option<u32>,
    /// Bytes of the buffer that messages have used.
    used: u64,
}

impl Waiting {
    fn is_for_many(&self) -> bool {
        self.receive.flags & flag::MULTI != 0
    }

    fn takes(&self, received: &Received) -> bool {
        rank_or_any(self.receive.from).is_none_or(|from| from == received.source)
    }
}

/// The untagged receives of a process, from its first buffer for many messages on.
#[derive(Default)]
pub(super) struct Untagged {
    is_used: Cell<bool>,
    waiting: RefCell<VecDeque<Waiting>>,
    /// Messages that no receive of the process has taken.
    early: RefCell<VecDeque<(ArrivedMessage, StandIn)>>,
    /// Receives of the host, by their numbers.
    posted: RefCell<BTreeMap<u64, (PendingRecv, Held)>>,
    /// The number of host receives that are posted, or will be.
    count: Cell<usize>,
    /// The length of each host receive, in bytes.
    room: Cell<u64>,
}

impl Untagged {
    /// Returns whether the library matches this receive.
    pub(super) fn has(&self, receive: &Receive) -> bool {
        receive.flags & flag::MULTI != 0 || (self.is_used.get() && receive.flags & flag::UNTAGGED != 0)
    }

    /// Returns the number of waiting receives for a single message, and the first of them.
    pub(super) fn waiting(&self) -> (usize, Option<Receive>) {
        let waiting = self.waiting.borrow();
        let mut single = waiting.iter().filter(|own| !own.is_for_many());
        let first = single.next().map(|own| own.receive);
        (usize::from(first.is_some()) + single.count(), first)
    }

    /// Returns the maximum number of host receives.
    fn most(&self) -> usize {
        AT_ONCE * self.waiting.borrow().iter().filter(|own| own.is_for_many()).count().max(1)
    }

    /// Removes and returns the receive with this context.
    fn take_back(&self, context: u64) -> Option<Receive> {
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting.iter().position(|own| own.receive.context == context)?;
        waiting.remove(at).map(|own| own.receive)
    }
}

impl Program {
    /// Posts a receive that the library matches.
    pub(super) async fn receive_untagged(self: &Rc<Self>, receive: Receive) -> Result<i64, Error> {
        let own = &self.untagged;
        own.is_used.set(true);
        let is_for_many = receive.flags & flag::MULTI != 0;
        let op = self
            .ended
            .logged(|log| if is_for_many { log.posts_many(self.rank) } else { log.posts(self.rank) });
        own.waiting.borrow_mut().push_back(Waiting { receive, op, used: 0 });
        self.match_early()?;
        let room = if is_for_many { receive.bytes.min(LONGEST_OF_MANY) } else { receive.bytes };
        if room > own.room.get() {
            own.room.set(room);
            self.withdraw().await?;
        }
        self.refill();
        Ok(0)
    }

    /// Cancels host receives that have no message, because they are shorter than a new receive.
    async fn withdraw(&self) -> Result<(), Error> {
        let own = &self.untagged;
        let numbers: Vec<u64> = own.posted.borrow().keys().copied().collect();
        for number in numbers {
            let Some(pending) = own.posted.borrow().get(&number).map(|(pending, _)| pending.clone()) else {
                continue;
            };
            if self.host.cancel(pending).await?.is_some() {
                continue;
            }
            if let Some((_, memory)) = own.posted.borrow_mut().remove(&number) {
                own.count.set(own.count.get() - 1);
                memory.take().into_iter().for_each(|own| self.stand_ins.give_back(own));
            }
        }
        Ok(())
    }

    /// Posts host receives, up to the maximum number.
    fn refill(self: &Rc<Self>) {
        let own = &self.untagged;
        while own.count.get() + own.early.borrow().len() < own.most() {
            own.count.set(own.count.get() + 1);
            let program = self.clone();
            self.start(|host| async move { program.take_untagged(&host).await });
        }
    }

    /// Receives messages one after another, as long as the number of host receives is below the maximum.
    async fn take_untagged(self: &Rc<Self>, host: &Host) -> Result<(), Error> {
        let own = &self.untagged;
        loop {
            let any = Receive { from: ANY, flags: flag::UNTAGGED, ..Receive::default() };
            let room = own.room.get();
            let stand_in = self.stand_ins.any(room + DATA_BYTES)?;
            let pending = self.post(host, &any, &stand_in).await?;
            // A receive of the process may be longer than this one by now.
            if room < own.room.get() && host.cancel(pending.clone()).await?.is_none() {
                self.stand_ins.give_back(stand_in);
                continue;
            }
            let number = self.numbers.replace(self.numbers.get() + 1);
            let memory = Rc::new(Cell::new(Some(stand_in)));
            own.posted.borrow_mut().insert(number, (pending.clone(), memory.clone()));
            let came = self.arrived(host, pending, None).await?;
            own.posted.borrow_mut().remove(&number);
            let Some(stand_in) = memory.take() else { return Ok(()) };
            own.early.borrow_mut().push_back((came, stand_in));
            self.match_early()?;
            if own.count.get() + own.early.borrow().len() > own.most() {
                own.count.set(own.count.get() - 1);
                return Ok(());
            }
        }
    }

    /// Copies waiting messages to the receives that accept them.
    fn match_early(&self) -> Result<(), Error> {
        let own = &self.untagged;
        let mut at = 0;
        loop {
            let Some(came) = own.early.borrow().get(at).map(|(came, _)| *came) else { return Ok(()) };
            let taker = own.waiting.borrow().iter().position(|waiting| waiting.takes(&came.received));
            let Some(taker) = taker else {
                at += 1;
                continue;
            };
            let (_, stand_in) = own.early.borrow_mut().remove(at).expect("it is there");
            self.bring_untagged(taker, came, stand_in)?;
        }
    }

    /// Copies a message to the receive with index `taker`.
    fn bring_untagged(&self, taker: usize, came: ArrivedMessage, stand_in: StandIn) -> Result<(), Error> {
        let mut waiting = self.untagged.waiting.borrow_mut();
        let own = &mut waiting[taker];
        let Receive { address, bytes, least, flags, .. } = own.receive;
        let op = match own.op {
            Some(many) if own.is_for_many() => self.ended.logged(|log| log.posts_behind(self.rank, many)),
            op => op,
        };
        let received = came.received;
        if let Some(op) = op {
            self.ended
                .logged(|log| log.got((self.rank, op), (received.source, received.tag), received.length));
        }
        let place = (address + own.used, bytes - own.used);
        let mut completion = self.bring(came, &stand_in, &own.receive, place)?;
        self.stand_ins.give_back(stand_in);
        own.used += completion.bytes;
        // A message that does not fit uses the rest of the buffer.
        let is_used_up = completion.error != 0 || bytes - own.used < least.max(1);
        completion.flags |= if own.is_for_many() && is_used_up { done::USED_UP } else { 0 };
        if is_used_up || !own.is_for_many() {
            waiting.remove(taker);
        }
        // The program always gets a completion when a buffer is full.
        if flags & flag::COMPLETION != 0 || completion.error != 0 || completion.flags & done::USED_UP != 0 {
            self.ended.complete(completion, op);
        }
        Ok(())
    }

    /// Cancels the receive with this context, if the library matches it. Returns whether there was such a receive.
    pub(super) fn cancel_untagged(&self, context: u64) -> bool {
        let Some(receive) = self.untagged.take_back(context) else { return false };
        let used_up = if receive.flags & flag::MULTI != 0 { done::USED_UP } else { 0 };
        let given_up = Completion {
            context,
            flags: done::RECV | done::UNTAGGED | used_up,
            error: libc::ECANCELED,
            source: ANY,
            ..Completion::default()
        };
        self.ended.complete(given_up, None);
        true
    }
}
