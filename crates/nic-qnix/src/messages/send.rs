//! The sender's side: small messages with their header, longer ones by RTS, CTS and bytes.

use crate::QnixError;
use crate::messages::header::{HEADER, Header, Kind};
use crate::messages::{Cleared, Messenger, SMALL};
use crate::process::{Send, TransferMethod};
use nicety_kernel::{Permit, describe};
use nicety_nic_core::{Caller, CardError, Outgoing};
use nicety_types::{Path, Payload};
use std::rc::Rc;

impl Messenger {
    /// Sends a message. Returns when its buffer may be reused.
    pub(crate) async fn send(
        self: &Rc<Self>,
        caller: Caller<'_>,
        message: Outgoing,
    ) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        self.process.check_peer(self.endpoint(to))?;
        self.process.check_bytes(address, bytes)?;
        if let Some(error) = self.failure() {
            return Err(error);
        }
        caller
            .timed("send", async |path| {
                if bytes <= self.longest_small() {
                    let header = Header { kind: Kind::Whole, tag, bytes, number: 0 };
                    return self.send_small(to, header, address, path).await;
                }
                self.send_long(message, path).await
            })
            .await
    }

    /// Sends a header, followed by the bytes of a whole message.
    pub(super) async fn send_small(
        &self,
        to: u32,
        header: Header,
        address: u64,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let turn = self.turn.acquire().await;
        let context = self.sends.acquire(1).await;
        let free = self.free_pieces.acquire(1).await;
        let piece = self.pieces.borrow_mut().pop().expect("as many as credits");
        let sent = self.send_piece(to, header, (address, piece), turn, path).await;
        self.pieces.borrow_mut().push(piece);
        drop((free, context));
        sent
    }

    async fn send_piece(
        &self,
        to: u32,
        header: Header,
        (address, piece): (u64, u64),
        turn: Permit,
        path: &mut Path,
    ) -> Result<(), CardError> {
        let memory = self.process.card().host_memory().clone();
        let behind = if header.kind == Kind::Whole { header.bytes } else { 0 };
        memory.poke(piece, &Payload::copy_of(&header.emit()))?;
        if behind > 0 {
            self.process.copy(address, piece + HEADER, behind, path).await?;
        }
        let (to, bytes) = (self.endpoint(to), HEADER + behind);
        let send = Send { address: piece, bytes, to, tag: SMALL, how: TransferMethod::Auto };
        let operation = self.process.send(self.vni, send, path).await?;
        // The next message is behind it in the Command Queue.
        drop(turn);
        self.process.wait(self.vni, operation, path).await?;
        Ok(())
    }

    async fn send_long(self: &Rc<Self>, message: Outgoing, path: &mut Path) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let limit = self.process.card().spec().limits.message;
        if bytes > limit {
            return Err(QnixError::Message { bytes, limit }.into());
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let cleared = Cleared::default();
        self.announced.borrow_mut().insert(number, cleared.clone());
        self.send_small(to, Header { kind: Kind::Rts, tag, bytes, number }, 0, path).await?;
        let ready = self.changed.wait_until(|| cleared.borrow().is_some() || self.failed.borrow().is_some());
        describe(move || format!("rank {to} to receive its message"), ready).await;
        let Some((wanted, its)) = cleared.take() else { return Err(self.failure().expect("one of the two")) };
        path.follow(&its);
        self.announced.borrow_mut().remove(&number);
        if wanted > 0 {
            let context = self.sends.acquire(1).await;
            let send = Send {
                address,
                bytes: wanted.min(bytes),
                to: self.endpoint(to),
                tag: number,
                how: TransferMethod::Auto,
            };
            let operation = self.process.send(self.vni, send, path).await?;
            self.process.wait(self.vni, operation, path).await?;
            drop(context);
        }
        Ok(())
    }
}
