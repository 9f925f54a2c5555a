//! A Portals 4 card on its node, with the interface of the design seam. `send` and `recv` are in `messages.rs`.

use crate::design::{DESIGN, Report};
use crate::{CallError, Card};
use nicety_host::Cpus;
use nicety_nic_core::parts::Early;
use nicety_nic_core::parts::transport::Wire;
use nicety_nic_core::{
    Arrival, Caller, Calling, CardError, CardReport, Design, OfDesign, Outgoing, PostedReceive,
    ProgramFailure, RefusedCommand, Tags, Wanted,
};
use std::rc::Rc;

/// A card on its node.
pub struct Node {
    card: Rc<Card>,
}

impl Node {
    /// Sets up the card's `send` and `recv`, and returns the node.
    pub(crate) fn set_up(card: Rc<Card>, cpus: Rc<Cpus>) -> Result<Node, CallError> {
        card.set_up_messages(cpus)?;
        Ok(Node { card })
    }

    /// Returns the card.
    pub const fn card(&self) -> &Rc<Card> {
        &self.card
    }
}

impl OfDesign for Node {
    const DESIGN: &'static Design = DESIGN;
}

impl nicety_nic_core::Card for Node {
    fn design(&self) -> &'static Design {
        DESIGN
    }

    fn report(&self) -> CardReport {
        let card = &self.card;
        CardReport::new(Report {
            portals: card.statistics(),
            handlers: card.processors().handler_statistics(),
            applications: card.applications(),
            printed: card.processors().printed(),
            transport: card.transport_statistics(),
            unusable: card.unusable(),
        })
    }

    fn failures(&self) -> Vec<ProgramFailure> {
        self.card.processors().failures()
    }

    fn wire(&self) -> Option<&Wire> {
        Some(self.card.wire())
    }

    fn unusable(&self) -> u64 {
        self.card.unusable().total()
    }

    fn refused_commands(&self) -> Vec<RefusedCommand> {
        self.card.processors().refused_commands()
    }

    fn unserved(&self) -> Vec<(String, u64)> {
        let refused = self.card.applications().into_iter().filter(|used| used.refused > 0);
        refused.map(|used| (used.name, used.refused)).collect()
    }

    fn lines_left_out(&self) -> u64 {
        self.card.processors().printed().suppressed
    }

    fn send<'c>(self: Rc<Self>, caller: Caller<'c>, message: Outgoing) -> Calling<'c, Result<(), CardError>> {
        Box::pin(async move { Ok(self.card.send_message(caller, message).await?) })
    }

    fn post_receive<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        wanted: Wanted,
    ) -> Calling<'c, Result<PostedReceive, CardError>> {
        Box::pin(async move { Ok(PostedReceive::new(self.card.post_receive(caller, wanted).await?)) })
    }

    fn when_received(
        &self,
        posted: PostedReceive,
        then: Box<dyn FnOnce(PostedReceive)>,
    ) -> Result<(), PostedReceive> {
        self.card.call_when_received(posted, then)
    }

    fn received<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Arrival, CardError>> {
        Box::pin(async move { Ok(self.card.received_message(caller, posted.of()).await?) })
    }

    fn probe<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        source: Option<u32>,
        tags: Tags,
    ) -> Calling<'c, Result<Option<Arrival>, CardError>> {
        Box::pin(async move { Ok(self.card.probe_messages(caller, source, tags).await?) })
    }

    fn early(&self) -> Option<&Early> {
        self.card.early_messages()
    }

    fn cancel<'c>(
        self: Rc<Self>,
        caller: Caller<'c>,
        posted: PostedReceive,
    ) -> Calling<'c, Result<Option<PostedReceive>, CardError>> {
        Box::pin(async move { Ok(self.card.cancel_receive(caller, posted).await?) })
    }
}
