//! The receiver's side: the library's thread, and the delivery of messages to receives.

use crate::messages::header::{HEADER, Header, Kind};
use crate::messages::{Came, KEPT, Messenger, Receiving, SMALL};
use crate::process::{Operation, Receive, TransferMethod};
use crate::{Endpoint, stages};
use nicety_kernel::{Signal, describe, race};
use nicety_nic_core::{Arrival, Caller, CardError, Tags, Wanted};
use nicety_types::{Duration, Path, Payload, Stage};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

impl Messenger {
    /// The library's thread: takes small messages in the order in which the card assigned them to its receives.
    pub(super) async fn run(self: Rc<Self>, inbox: Vec<u64>) {
        let mut posted = VecDeque::new();
        let mut path = self.path();
        for piece in inbox {
            match self.post_small(piece, &mut path).await {
                Ok(operation) => posted.push_back((operation, piece)),
                Err(error) => return self.fail(error),
            }
        }
        while let Some((operation, piece)) = posted.pop_front() {
            match self.take_small(operation, piece).await {
                Ok(operation) => posted.push_back((operation, piece)),
                Err(error) => return self.fail(error),
            }
        }
    }

    /// Posts a receive of the card for a small message from any sender.
    async fn post_small(&self, piece: u64, path: &mut Path) -> Result<Operation, CardError> {
        let (bytes, tags) = (self.longest_small() + HEADER, Tags { bits: SMALL, ignore: !SMALL });
        let receive = Receive { address: piece, bytes, from: None, tags, how: TransferMethod::Pool };
        Ok(self.process.receive(self.vni, receive, path).await?)
    }

    /// Takes a small message, and posts its receive again.
    async fn take_small(self: &Rc<Self>, operation: Operation, piece: u64) -> Result<Operation, CardError> {
        let mut path = self.path();
        // A message that arrived while the thread was busy has waited for it.
        if let Some(mut its) = self.process.rung(self.vni, operation) {
            its.advance(stages::LIBRARY_QUEUED, path.at());
            path = its;
        }
        let done = self.process.wait(self.vni, operation, &mut path).await?;
        let length = done.bytes.min(self.longest_small() + HEADER);
        let bytes = self.process.card().host_memory().peek(piece, length)?.into_buffer();
        let bytes =
            bytes.map_err(|error| CardError::Failed(format!("messages of send and recv: {error}")))?;
        match Header::parse(&bytes, done.bytes) {
            Some(header) => self.came(header, done.peer, &bytes[HEADER as usize..], &mut path).await?,
            None => {
                return Err(CardError::Failed(format!(
                    "rank {} sent the library of messages what is none of its messages",
                    done.peer.node.0
                )));
            }
        }
        self.post_small(piece, &mut path).await
    }

    /// Handles an arrived small message: a whole one is copied to its receive, or to the library's memory.
    async fn came(
        self: &Rc<Self>,
        header: Header,
        from: Endpoint,
        bytes: &[u8],
        path: &mut Path,
    ) -> Result<(), CardError> {
        if header.kind == Kind::Cts {
            if let Some(cleared) = self.announced.borrow().get(&header.number) {
                cleared.replace(Some((header.bytes, path.clone())));
            }
            self.changed.notify_all();
            return Ok(());
        }
        let came = Came { header, from, bytes: bytes.to_vec() };
        let taken =
            self.matching.borrow_mut().take_receive(|posted: &Rc<Receiving>| came.is_for(&posted.wanted)).0;
        let Some(receiving) = taken else {
            let kept = self.kept.get() + bytes.len() as u64;
            if kept > KEPT {
                return Err(CardError::Failed(format!(
                    "the library of messages has no room for more messages that no receive has taken: they have {kept} bytes, and it \
                     keeps {KEPT}; post receives earlier"
                )));
            }
            self.kept.set(kept);
            self.spend_copy(bytes.len() as u64, path).await;
            // A receive may have been posted meanwhile.
            let posted = self.matching.borrow_mut().take_receive(|posted| came.is_for(&posted.wanted)).0;
            match posted {
                Some(receiving) => {
                    self.kept.set(kept - came.bytes.len() as u64);
                    self.bring(&receiving, came, path.clone());
                }
                None => {
                    self.matching.borrow_mut().keep(came);
                    self.early.note();
                }
            }
            return Ok(());
        };
        if header.kind == Kind::Whole {
            self.spend_copy(header.bytes.min(receiving.wanted.room), path).await;
            self.put_in_place(&receiving, &came, path.clone());
        } else {
            self.bring(&receiving, came, path.clone());
        }
        Ok(())
    }

    /// Charges a CPU copy of `bytes` bytes.
    async fn spend_copy(&self, bytes: u64, path: &mut Path) {
        let card = self.process.card();
        let span: Duration = card.spec().library.copy.cover(bytes);
        card.kernel().cpus().spend(span, Stage::COPY, path).await;
    }

    /// Writes a whole message into its receive.
    fn put_in_place(&self, receiving: &Receiving, came: &Came, path: Path) {
        let Wanted { address, room, .. } = receiving.wanted;
        let there = &came.bytes[..came.bytes.len().min(room as usize)];
        let written = self.process.card().host_memory().poke(address, &Payload::copy_of(there));
        finish(receiving, written.map(|()| arrival(receiving, came)).map_err(CardError::from), path);
    }

    /// Delivers a message that has waited, or a long one, to its receive.
    fn bring(self: &Rc<Self>, receiving: &Rc<Receiving>, came: Came, path: Path) {
        let (own, receiving) = (self.clone(), receiving.clone());
        self.spawn(async move {
            let mut path = path;
            if came.header.kind == Kind::Whole {
                own.spend_copy(came.header.bytes.min(receiving.wanted.room), &mut path).await;
                own.put_in_place(&receiving, &came, path);
                return Ok(());
            }
            own.bring_long(&receiving, &came, path).await
        });
    }

    /// Requests the bytes of a long message into its receive's buffer.
    async fn bring_long(&self, receiving: &Receiving, came: &Came, mut path: Path) -> Result<(), CardError> {
        let (Header { bytes, number, tag, .. }, from) = (came.header, came.from);
        let wanted = bytes.min(receiving.wanted.room);
        let mut pending = None;
        let _context = match wanted {
            0 => None,
            _ => Some(self.receives.acquire(1).await),
        };
        if wanted > 0 {
            let (address, tags) = (receiving.wanted.address, Tags::exactly(number));
            let receive =
                Receive { address, bytes: wanted, from: Some(from), tags, how: TransferMethod::Auto };
            pending = Some(self.process.receive(self.vni, receive, &mut path).await?);
        }
        let header = Header { kind: Kind::Cts, tag, bytes: wanted, number };
        self.send_small(from.node.0, header, 0, &mut path).await?;
        if let Some(operation) = pending {
            self.process.wait(self.vni, operation, &mut path).await?;
        }
        finish(receiving, Ok(arrival(receiving, came)), path);
        Ok(())
    }

    /// Posts a receive: it takes the oldest message that matches, or waits.
    pub(crate) fn post(
        self: &Rc<Self>,
        caller: Caller<'_>,
        wanted: Wanted,
    ) -> Result<Rc<Receiving>, CardError> {
        self.process.check_bytes(wanted.address, wanted.room)?;
        let done = Signal::new(&self.process.card().sim);
        let receiving = Rc::new(Receiving { wanted, result: RefCell::default(), done });
        let found = self.matching.borrow_mut().take_message(|came: &Came| came.is_for(&wanted)).0;
        match found {
            Some(came) => {
                self.kept.set(self.kept.get() - came.bytes.len() as u64);
                self.bring(&receiving, came, caller.path.borrow().clone());
            }
            None => self.matching.borrow_mut().post(receiving.clone()),
        }
        Ok(receiving)
    }

    /// Waits for the message of a receive.
    pub(crate) async fn received(
        &self,
        caller: Caller<'_>,
        receiving: &Receiving,
    ) -> Result<Arrival, CardError> {
        let wanted = receiving.wanted;
        caller
            .timed("wait for a receive", async |path| {
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
            })
            .await
    }

    /// Returns the oldest message that a receive would take, from those that none has taken.
    pub(crate) async fn probe(
        &self,
        caller: Caller<'_>,
        source: Option<u32>,
        tags: Tags,
    ) -> Result<Option<Arrival>, CardError> {
        caller.on_path(async |path| caller.cpus.notice(path, None).await).await;
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let wanted = Wanted { source, tags, address: 0, room: 0 };
        let matching = self.matching.borrow();
        let found = matching.messages().find(|came| came.is_for(&wanted));
        Ok(found.map(|Came { header, from, .. }| Arrival {
            source: from.node.0,
            tag: header.tag,
            bytes: header.bytes,
            room: header.bytes,
        }))
    }

    /// Cancels a posted receive. Returns whether no message has taken it.
    pub(crate) async fn cancel(&self, caller: Caller<'_>, receiving: &Rc<Receiving>) -> bool {
        caller.on_path(async |path| caller.cpus.notice(path, None).await).await;
        self.matching.borrow_mut().withdraw(|posted| Rc::ptr_eq(posted, receiving)).is_some()
    }
}

fn arrival(receiving: &Receiving, came: &Came) -> Arrival {
    let Header { tag, bytes, .. } = came.header;
    Arrival { source: came.from.node.0, tag, bytes, room: receiving.wanted.room }
}

pub(super) fn finish(receiving: &Receiving, result: Result<Arrival, CardError>, path: Path) {
    receiving.result.replace(Some((result, path)));
    receiving.done.notify_all();
}
