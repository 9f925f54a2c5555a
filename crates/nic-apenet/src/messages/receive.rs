//! The receiver's side of `recv`: delivery of messages to receives, and return of credits.

use crate::messages::{BYTES, CREDIT, CTS, Came, Coming, How, Messenger, Receiving, data};
use nicety_kernel::{Signal, describe, race};
use nicety_nic_core::{Arrival, CardError, Tags, Wanted};
use nicety_types::{Path, Stage};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

impl Messenger {
    /// Posts a receive. `path` is that of the program.
    pub(crate) fn post(self: &Rc<Self>, wanted: Wanted, path: &Path) -> Rc<Receiving> {
        let done = Signal::new(&self.card.sim);
        let receiving =
            Rc::new(Receiving { wanted, result: RefCell::default(), ended: Cell::new(false), done });
        let found = self.matching.borrow_mut().take_message(|came| wanted.takes(came.source, came.tag)).0;
        match found {
            Some(came) => self.begin(receiving.clone(), came, path.clone()),
            None => self.matching.borrow_mut().post(receiving.clone()),
        }
        receiving
    }

    /// Waits for the message of a receive.
    pub(crate) async fn received(
        &self,
        receiving: &Receiving,
        path: &mut Path,
    ) -> Result<Arrival, CardError> {
        let wanted = receiving.wanted;
        let failed = self.changed.wait_until(|| self.failed.borrow().is_some());
        let done = receiving.done.wait_until(|| receiving.result.borrow().is_some());
        describe(move || wanted.what(), race(done, failed)).await;
        match receiving.result.take() {
            Some((result, its)) => {
                path.follow(&its);
                result
            }
            None => Err(self.failure().expect("one of the two")),
        }
    }

    /// Returns the oldest message that a receive would take, from those that no receive has taken.
    pub(crate) async fn probe(
        &self,
        source: Option<u32>,
        tags: Tags,
        path: &mut Path,
    ) -> Result<Option<Arrival>, CardError> {
        self.card.kernel.cpus().notice(path, None).await;
        if self.failed.borrow().is_some() {
            return Err(self.failure().expect("just seen"));
        }
        let wanted = Wanted { source, tags, address: 0, room: 0 };
        let matching = self.matching.borrow();
        let found = matching.messages().find(|came| wanted.takes(came.source, came.tag));
        let arrival =
            |came: &Came| Arrival { source: came.source, tag: came.tag, bytes: came.bytes, room: came.bytes };
        Ok(found.map(arrival))
    }

    /// Cancels a posted receive. Returns whether no message has taken it.
    pub(crate) async fn cancel(&self, receiving: &Rc<Receiving>, path: &mut Path) -> bool {
        self.card.kernel.cpus().notice(path, None).await;
        self.matching.borrow_mut().withdraw(|posted| Rc::ptr_eq(posted, receiving)).is_some()
    }

    /// Delivers a message to its receive.
    pub(super) fn begin(self: &Rc<Self>, receiving: Rc<Receiving>, came: Came, path: Path) {
        let own = self.clone();
        self.card.sim.spawn(async move {
            let mut path = path;
            let (source, tag, bytes) = (came.source, came.tag, came.bytes);
            let arrival = Arrival { source, tag, bytes, room: receiving.wanted.room };
            let taken = match came.how {
                How::Eager(buffer) => own.bring_eager(&receiving, arrival, buffer, &mut path).await,
                How::Long(id) => own.bring_long(&receiving, arrival, id, &mut path).await,
            };
            if let Err(error) = taken {
                finish(&receiving, Err(error), path);
            }
        });
    }

    /// A receive that fails has taken its message nevertheless.
    async fn bring_eager(
        self: &Rc<Self>,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        buffer: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let brought = self.copy_out(receiving, arrival, buffer, path).await;
        finish(receiving, brought.map(|()| arrival), path.clone());
        if arrival.bytes > 0 {
            self.process.post_streaming(buffer, self.card.spec.messages.eager, path).await?;
        }
        self.taken(arrival, path).await
    }

    /// Copies a message out of its streaming buffer.
    async fn copy_out(
        &self,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        buffer: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let (address, length) = (receiving.wanted.address, arrival.bytes.min(arrival.room));
        if length > 0 && self.card.is_gpu(address) {
            // No CPU writes there: the card copies from one memory of the host to the other.
            let (own, id, lease) =
                (self.card.node.0, self.number(), self.leases.lease(address, length, path).await?);
            let coming = Coming { receiving: receiving.clone(), arrival, length, _lease: Some(lease) };
            self.coming.borrow_mut().insert((own, id), coming);
            self.put(own, buffer, address, length, data(BYTES, id, 0), path).await?;
            receiving.done.wait_until(|| receiving.ended.get()).await;
            path.advance(Stage::COPY, self.card.sim.now());
        } else if length > 0 {
            self.copy(buffer, address, length, path).await?;
        }
        Ok(())
    }

    /// Registers the buffer of a receive, and asks for the bytes. On failure it asks for none, so that the sender
    /// continues.
    async fn bring_long(
        &self,
        receiving: &Rc<Receiving>,
        arrival: Arrival,
        id: u32,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let address = receiving.wanted.address;
        let (mut length, mut lease) = (arrival.bytes.min(arrival.room), None);
        if length > 0 {
            match self.leases.lease(address, length, path).await {
                Ok(registered) => lease = Some(registered),
                Err(error) => {
                    finish(receiving, Err(error.into()), path.clone());
                    length = 0;
                }
            }
        }
        let coming = Coming { receiving: receiving.clone(), arrival, length, _lease: lease };
        self.coming.borrow_mut().insert((arrival.source, id), coming);
        self.put(arrival.source, 0, address, 0, data(CTS, id, length as u32), path).await?;
        self.taken(arrival, path).await
    }

    /// Records that a receive has taken a message. Credits return several at a time.
    async fn taken(&self, arrival: Arrival, path: &mut Path) -> Result<(), CardError> {
        let peer = self.peer_of(arrival.source, arrival.tag);
        peer.held.set(peer.held.get() - 1);
        peer.owed.set(peer.owed.get() + 1);
        if peer.owed.get() >= self.window.get().div_ceil(2) {
            let credits = peer.owed.replace(0);
            self.put(peer.rank, 0, 0, 0, data(CREDIT, peer.pair, credits as u32), path).await?;
        }
        Ok(())
    }
}

pub(super) fn finish(receiving: &Receiving, result: Result<Arrival, CardError>, path: Path) {
    // A received message stays received, whatever happens after it.
    if !receiving.ended.replace(true) {
        receiving.result.replace(Some((result, path)));
    }
    receiving.done.notify_all();
}
