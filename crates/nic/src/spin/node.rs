//! A Portals 4 card on its node, with what `send` and `recv` of the host have of it: messages between ranks as puts into
//! use-once match entries.

use super::design::{DESIGN, Report};
use super::{Appending, CallError, Card, Fault, RefusedCommand};
use crate::design::{self, CardError, CardReport, Design, OfDesign};
use crate::messages::{Arrival, Caller, Calling, Outgoing, PostedReceive, Wanted};
use crate::transport::Undelivered;
use nicety_portals::{
    EqHandle, Event, EventKind, List, Md, MdOptions, Me, MeOptions, PutRequest, Request, Source,
};
use nicety_types::NodeId;
use std::cell::Cell;
use std::rc::Rc;

/// The portal table entry that `send` and `recv` use.
pub const MESSAGES: u32 = 0;

/// A card on its node.
pub struct Node {
    card: Rc<Card>,
    /// Events of sends and receives.
    events: EqHandle,
    /// Names of sends and receives, to tell their events apart.
    requests: Cell<u64>,
}

/// A receive whose entry the card has, or will have.
struct Posted {
    appending: Appending,
    /// Its name, in its event.
    user_ptr: u64,
    wanted: Wanted,
}

impl Node {
    /// Takes the events and the portal table entry that messages need.
    pub(super) fn set_up(card: Rc<Card>) -> Result<Node, CallError> {
        let events = card.eq_alloc(card.spec().limits.event_queue_depth)?;
        card.pt_alloc(Some(MESSAGES), Some(events))?;
        Ok(Node { card, events, requests: Cell::new(0) })
    }

    /// The card.
    pub const fn card(&self) -> &Rc<Card> {
        &self.card
    }

    fn next_request(&self) -> u64 {
        let request = self.requests.get();
        self.requests.set(request + 1);
        request
    }

    /// A put, and the wait for its SEND event.
    async fn put(&self, caller: Caller<'_>, message: Outgoing) -> Result<(), CallError> {
        let (card, start) = (&self.card, caller.sim.now());
        let Outgoing { to, tag, address, bytes } = message;
        let user_ptr = self.next_request();
        let md = card.md_bind(Md {
            start: address,
            length: bytes,
            options: MdOptions::default(),
            eq: Some(self.events),
            ct: None,
        })?;
        let put = PutRequest { user_ptr, ..PutRequest::new(md, bytes, NodeId(to), MESSAGES, tag.into()) };
        let put = Request::Put(put);
        caller.timed(put.name(), async |path| card.post(caller.cpus, path, &put).await).await?;
        let sent = |event: &Event| event.kind == EventKind::Send && event.user_ptr == user_ptr;
        let what = move || format!("its send to rank {to}, tag {tag}, to leave");
        let wait = async |path: &mut _| card.eq_wait(caller.cpus, path, self.events, sent, what).await;
        caller.timed("wait for an event", wait).await?;
        card.md_release(md)?;
        caller.called("send", start);
        Ok(())
    }

    /// A use-once entry for it.
    async fn append(&self, caller: Caller<'_>, wanted: Wanted) -> Result<Posted, CallError> {
        let Wanted { source, tag, address, room } = wanted;
        let user_ptr = self.next_request();
        let me = Me {
            start: address,
            length: room,
            match_bits: tag.unwrap_or(0).into(),
            ignore_bits: if tag.is_some() { 0 } else { !0 },
            source: source.map_or(Source::Any, |rank| Source::Rank(NodeId(rank))),
            options: MeOptions::OP_PUT
                | MeOptions::USE_ONCE
                | MeOptions::EVENT_LINK_DISABLE
                | MeOptions::EVENT_UNLINK_DISABLE,
            user_ptr,
            ..Me::default()
        };
        let (card, cpus) = (&self.card, caller.cpus);
        let post = async |path: &mut _| card.me_append(cpus, path, MESSAGES, me, List::Priority).await;
        let appending = caller.timed("append an entry", post).await?;
        Ok(Posted { appending, user_ptr, wanted })
    }

    /// Waits for its PUT event.
    async fn arrival(&self, caller: Caller<'_>, posted: Posted) -> Result<Arrival, CallError> {
        let Posted { appending, user_ptr, wanted } = posted;
        let (card, cpus) = (&self.card, caller.cpus);
        let put = |event: &Event| event.kind == EventKind::Put && event.user_ptr == user_ptr;
        let wait = async |path: &mut _| {
            card.eq_wait_of(cpus, path, self.events, &appending, put, || wanted.what()).await
        };
        let event = caller.timed("wait for an event", wait).await?;
        let (source, tag) = (event.initiator.0, event.match_bits as u32);
        Ok(Arrival { source, tag, bytes: event.rlength, room: event.mlength })
    }
}

impl OfDesign for Node {
    const DESIGN: &'static dyn Design = DESIGN;
}

impl design::Card for Node {
    fn design(&self) -> &'static dyn Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        let card = &self.card;
        CardReport::new(Report {
            portals: card.statistics(),
            handlers: card.handler_statistics(),
            applications: card.applications(),
            printed: card.printed(),
            transport: card.transport_statistics(),
            unusable: card.unusable(),
        })
    }

    fn faults(&self) -> Vec<Fault> {
        self.card.faults()
    }

    fn undelivered(&self) -> Vec<Undelivered> {
        self.card.undelivered()
    }

    fn is_reliable(&self) -> Option<bool> {
        Some(self.card.spec().transport.reliable)
    }

    fn unusable(&self) -> u64 {
        self.card.unusable().total()
    }

    fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.card.refused_commands()
    }

    fn unserved(&self) -> Vec<(String, u64)> {
        let refused = self.card.applications().into_iter().filter(|used| used.refused > 0);
        refused.map(|used| (used.name, used.refused)).collect()
    }

    fn lines_left_out(&self) -> u64 {
        self.card.printed().left_out
    }

    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move { Ok(self.put(caller, message).await?) })
    }

    fn post_receive<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        Box::pin(async move { Ok(PostedReceive::new(self.append(caller, wanted).await?)) })
    }

    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        Box::pin(async move { Ok(self.arrival(caller, posted.of()).await?) })
    }
}
