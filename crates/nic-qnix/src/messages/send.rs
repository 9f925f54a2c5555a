//! The sender's side: small messages with their header, and longer messages by RTS, CTS and bytes.

use crate::QnixError;
use crate::messages::header::{HEADER, Header, Kind};
use crate::messages::{Messenger, SMALL};
use crate::process::{Send, TransferMethod};
use nicety_kernel::{Permit, describe};
use nicety_nic_core::{CardError, Outgoing};
use nicety_types::{Path, Payload};

impl Messenger {
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
        // The next message comes after this message in the Command Queue.
        drop(turn);
        self.process.wait(self.vni, operation, path).await?;
        Ok(())
    }

    pub(super) async fn send_long(&self, message: Outgoing, path: &mut Path) -> Result<(), CardError> {
        let Outgoing { to, tag, address, bytes } = message;
        let limit = self.process.card().spec().limits.message;
        if bytes > limit {
            return Err(QnixError::Message { bytes, limit }.into());
        }
        let number = self.long.replace(self.long.get() + 1);
        self.announced.announce(number, to, bytes);
        self.send_small(to, Header { kind: Kind::Rts, tag, bytes, number }, 0, path).await?;
        let ready = self.library.answered(&self.announced, number);
        let (wanted, its) = describe(move || format!("rank {to} to receive its message"), ready).await?;
        path.follow(&its);
        self.announced.end(number);
        if wanted > 0 {
            let context = self.sends.acquire(1).await;
            let (to, bytes) = (self.endpoint(to), wanted.min(bytes));
            let send = Send { address, bytes, to, tag: number, how: TransferMethod::Auto };
            let operation = self.process.send(self.vni, send, path).await?;
            self.process.wait(self.vni, operation, path).await?;
            drop(context);
        }
        Ok(())
    }
}
