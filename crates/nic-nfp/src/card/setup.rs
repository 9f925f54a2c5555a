//! Channels connected before the run begins.

use crate::card::{Card, ChannelError};
use nicety_channels::{CardEffect, Channel, HostEffect, TargetId};
use std::rc::Rc;

impl Card {
    /// Registers a target and subscribes to it as set-up, which takes no virtual time. The target is already registered
    /// when the process first reads or writes.
    ///
    /// # Errors
    /// When the target is already registered, or the limit of channels or targets is reached.
    ///
    /// # Panics
    /// When calls are in flight.
    pub fn connect(self: &Rc<Card>, target: u32) -> Result<Channel, ChannelError> {
        let (mut host, mut card) = (self.host.borrow_mut(), self.card.borrow_mut());
        card.register(TargetId(target))?;
        let caller = self.take_thread()?;
        let (mut of_host, mut of_card) = (Vec::new(), Vec::new());
        let channel = host.subscribe(caller.id, TargetId(target), &mut of_host)?;
        let mut ended = None;
        while !(of_host.is_empty() && of_card.is_empty()) {
            for effect in std::mem::take(&mut of_host) {
                match effect {
                    HostEffect::Post { mailbox, bytes } => {
                        self.lane(mailbox, |lane| lane.outbox = bytes);
                        card.ring(mailbox, &mut of_card)?;
                    }
                    HostEffect::Wake { result, .. } => ended = Some(result),
                    other => unreachable!("no part of a subscription: {other:?}"),
                }
            }
            for effect in std::mem::take(&mut of_card) {
                match effect {
                    CardEffect::Fetch { manager, mailbox } => {
                        let found = self.lane(mailbox, |lane| lane.outbox);
                        card.fetched(manager, &found, &mut of_card)?;
                    }
                    CardEffect::Push { manager, mailbox, bytes } => {
                        host.deposit(mailbox, &bytes)?;
                        card.done(manager, &mut of_card)?;
                    }
                    CardEffect::Interrupt => host.interrupt(&mut of_host),
                    other => unreachable!("set-up comes before all calls: {other:?}"),
                }
            }
        }
        ended.expect("a subscription is answered")?;
        caller.end();
        Ok(channel)
    }
}
