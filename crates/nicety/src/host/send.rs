//! Sending messages from rank to rank.

use super::{Buffer, Host};
use crate::Error;
use crate::node::NodeCard;
use nicety_nic::qnix::How;
use nicety_nic::spin::{CallError, Card};
use nicety_portals::{EqHandle, Event, EventKind, Md, MdOptions, PutRequest};
use nicety_types::NodeId;
use std::cell::Cell;
use std::rc::Rc;

/// The portal table entry that `send` and `recv` use.
pub(crate) const MESSAGES: u32 = 0;

/// What `send` and `recv` work with on a Portals card.
pub(super) struct Messages {
    /// Events of sends and receives.
    pub(super) events: EqHandle,
    /// Names of sends and receives, to tell their events apart.
    requests: Cell<u64>,
}

impl Messages {
    /// The events and the portal table entry that they need.
    pub(super) fn on(card: &Rc<Card>) -> Result<Messages, CallError> {
        let events = card.eq_alloc(card.spec().limits.event_queue_depth)?;
        card.pt_alloc(Some(MESSAGES), Some(events))?;
        Ok(Messages { events, requests: Cell::new(0) })
    }

    pub(super) fn next_request(&self) -> u64 {
        let request = self.requests.get();
        self.requests.set(request + 1);
        request
    }
}

impl Host {
    /// The card and what `send` and `recv` work with on it.
    pub(super) fn messages(&self) -> Result<(&Rc<Card>, &Messages), Error> {
        let card = self.spin()?;
        Ok((card, self.inner.messages.as_ref().expect("made with every card that has Portals")))
    }

    /// Refuses a rank that there is not.
    pub(super) fn check_rank(&self, rank: u32) -> Result<(), Error> {
        let ranks = self.inner.ranks;
        if rank < ranks { Ok(()) } else { Err(CallError::Rank { rank, ranks }.into()) }
    }

    /// Sends a buffer to a rank's `recv` of the same tag, its own included. Returns when the buffer may be used again.
    ///
    /// On a Portals card: a put, and the wait for its SEND event; the receive has to be posted when the message comes:
    /// [`Host::post_recv`]. On a flow processor: a channel to the processes that forward messages, which have it wait until
    /// its receive is there, or to itself by the library alone. On a card with virtual network interfaces: a Send command, and the wait for its doorbell; a
    /// message without a receive waits in the card's memory.
    ///
    /// # Errors
    /// When there is no such rank.
    pub async fn send(&self, buffer: &Buffer, to: u32, tag: u32) -> Result<(), Error> {
        let start = self.now();
        match &self.inner.card {
            NodeCard::Spin(_) => self.put_message(buffer, to, tag).await?,
            NodeCard::Nfp(card) => {
                let messenger = card.messenger(Some(to))?;
                let (address, bytes) = (buffer.address(), buffer.len());
                self.on_path(async |path| messenger.send(path, to, tag, address, bytes).await).await?;
            }
            NodeCard::Qnix(_) => return self.send_by(buffer, to, tag, How::Auto).await,
        }
        self.called("send", start);
        Ok(())
    }

    /// Sends it as a put.
    async fn put_message(&self, buffer: &Buffer, to: u32, tag: u32) -> Result<(), Error> {
        let (card, messages) = self.messages()?;
        let user_ptr = messages.next_request();
        let md = self.md_bind(Md {
            start: buffer.address(),
            length: buffer.len(),
            options: MdOptions::default(),
            eq: Some(messages.events),
            ct: None,
        })?;
        let request =
            PutRequest { user_ptr, ..PutRequest::new(md, buffer.len(), NodeId(to), MESSAGES, tag.into()) };
        self.put(&request).await?;
        let sent = |event: &Event| event.kind == EventKind::Send && event.user_ptr == user_ptr;
        let what = move || format!("its send to rank {to}, tag {tag}, to leave");
        self.eq_wait(messages.events, sent, what).await?;
        Ok(card.md_release(md)?)
    }
}
