//! The receiver's side: the library's thread, and the delivery of messages to receives.

use crate::messages::header::{HEADER, Header, Kind};
use crate::messages::{ArrivedMessage, Body, KEPT, Messenger, Receiving, SMALL};
use crate::process::{Operation, Receive, TransferMethod};
use crate::stages;
use nicety_nic_core::library::Announced;
use nicety_nic_core::library::Transport;
use nicety_nic_core::{CardError, Tags, Wanted};
use nicety_types::{Duration, Path, Payload, Stage};
use std::collections::VecDeque;
use std::rc::Rc;

impl Messenger {
    /// Runs the library's thread. The thread takes small messages in the order in which the card assigned them to its
    /// receives.
    pub(super) async fn run(self: Rc<Self>, inbox: Vec<u64>) {
        let mut posted = VecDeque::new();
        let mut path = self.path();
        for piece in inbox {
            match self.post_small(piece, &mut path).await {
                Ok(operation) => posted.push_back((operation, piece)),
                Err(error) => return self.library.fail(error),
            }
        }
        while let Some((operation, piece)) = posted.pop_front() {
            match self.take_small(operation, piece).await {
                Ok(operation) => posted.push_back((operation, piece)),
                Err(error) => return self.library.fail(error),
            }
        }
    }

    /// Posts a receive of the card for a small message from any sender.
    async fn post_small(&self, piece: u64, path: &mut Path) -> Result<Operation, CardError> {
        let (bytes, tags) = (self.longest_small() + HEADER, Tags { bits: SMALL, ignore: !SMALL });
        let receive = Receive { address: piece, bytes, from: None, tags, how: TransferMethod::Pool };
        Ok(self.process.receive(self.vni, receive, path).await?)
    }

    /// Takes the small message that a receive of the card has got, and posts the receive again. Returns the new
    /// operation.
    async fn take_small(self: &Rc<Self>, operation: Operation, piece: u64) -> Result<Operation, CardError> {
        let mut path = self.path();
        // A message that arrived while the thread was busy has waited for the thread.
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
            Some(header) => {
                self.arrived(header, done.peer.node.0, &bytes[HEADER as usize..], &mut path).await?
            }
            None => {
                return Err(CardError::Failed(format!(
                    "rank {} sent a message that is not from a library of send and recv",
                    done.peer.node.0
                )));
            }
        }
        self.post_small(piece, &mut path).await
    }

    /// Handles an arrived small message. Copies the bytes of a whole message to its receive's buffer, or to the
    /// library's memory.
    async fn arrived(
        self: &Rc<Self>,
        header: Header,
        source: u32,
        bytes: &[u8],
        path: &mut Path,
    ) -> Result<(), CardError> {
        let Header { kind, tag, bytes: length, number } = header;
        let body = match kind {
            Kind::Cts => {
                let fits = |announced: &Announced<u64>, &bytes: &u64| bytes <= announced.bytes;
                self.announced.answer(number, source, (length, path.clone()), fits);
                self.library.changed.notify_all();
                return Ok(());
            }
            Kind::Whole => Body::Small(bytes.to_vec()),
            Kind::Rts => Body::Long(number),
        };
        let came = ArrivedMessage { source, tag, bytes: length, body };
        let Some(receiving) = self.library.take_receive(source, tag) else {
            let kept = self.kept.get() + came.body.kept();
            if kept > KEPT {
                return Err(CardError::Failed(format!(
                    "the message library has no room for more messages without a receive: they have {kept} \
                     bytes, and the maximum is {KEPT}; post receives earlier"
                )));
            }
            self.kept.set(kept);
            self.spend_copy(came.body.kept(), path).await;
            // A program may have posted a receive during the copy.
            self.arrive(came, path.clone());
            return Ok(());
        };
        match &came.body {
            Body::Small(bytes) => {
                self.spend_copy(length.min(receiving.wanted.room), path).await;
                self.put_in_place(&receiving, &came, bytes, path.clone());
            }
            Body::Long(_) => self.bring(receiving, came, path.clone()),
        }
        Ok(())
    }

    /// Spends the time of a CPU copy of `bytes` bytes.
    async fn spend_copy(&self, bytes: u64, path: &mut Path) {
        let card = self.process.card();
        let span: Duration = card.spec().library.copy.cover(bytes);
        card.kernel().cpus().spend(span, Stage::COPY, path).await;
    }

    /// Writes a whole message into its receive's buffer, and ends the receive.
    fn put_in_place(&self, receiving: &Receiving, came: &ArrivedMessage, bytes: &[u8], path: Path) {
        let Wanted { address, room, .. } = receiving.wanted;
        let there = &bytes[..bytes.len().min(room as usize)];
        let written = self.process.card().host_memory().poke(address, &Payload::copy_of(there));
        receiving.finish(written.map(|()| came.arrival(room)).map_err(CardError::from), path);
    }

    /// Delivers a message to its receive. The message is a small message that has waited, or a long message.
    pub(super) fn bring(self: &Rc<Self>, receiving: Rc<Receiving>, came: ArrivedMessage, mut path: Path) {
        let own = self.clone();
        self.spawn(async move {
            match &came.body {
                Body::Small(bytes) => {
                    own.spend_copy(came.bytes.min(receiving.wanted.room), &mut path).await;
                    own.put_in_place(&receiving, &came, bytes, path);
                    Ok(())
                }
                Body::Long(number) => own.bring_long(&receiving, &came, *number, path).await,
            }
        });
    }

    /// Requests the bytes of a long message, receives them into the receive's buffer, and ends the receive.
    async fn bring_long(
        &self,
        receiving: &Receiving,
        came: &ArrivedMessage,
        number: u64,
        mut path: Path,
    ) -> Result<(), CardError> {
        let ArrivedMessage { source, tag, bytes, .. } = *came;
        let Wanted { address, room, .. } = receiving.wanted;
        let wanted = bytes.min(room);
        let mut pending = None;
        let _context = match wanted {
            0 => None,
            _ => Some(self.receives.acquire(1).await),
        };
        if wanted > 0 {
            let (from, tags) = (Some(self.endpoint(source)), Tags::exactly(number));
            let receive = Receive { address, bytes: wanted, from, tags, how: TransferMethod::Auto };
            pending = Some(self.process.receive(self.vni, receive, &mut path).await?);
        }
        let header = Header { kind: Kind::Cts, tag, bytes: wanted, number };
        self.send_small(source, header, 0, &mut path).await?;
        if let Some(operation) = pending {
            self.process.wait(self.vni, operation, &mut path).await?;
        }
        receiving.finish(Ok(came.arrival(room)), path);
        Ok(())
    }
}
