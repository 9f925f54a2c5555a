//! Handles the messages in mailboxes that a manager has fetched from the host.

use super::{Card, CardEffect, LaneState, Manager, Stage};
use crate::{
    Body, Completion, Direction, DropReason, Error, Failure, MAILBOX_BYTES, Mailbox, ManagerId, Message,
    PageList, Reply, Status, TargetId, Want,
};

impl Card {
    /// Completes a manager's [`CardEffect::Fetch`]. `bytes` is the host's copy of the mailbox at the time of the fetch.
    ///
    /// # Errors
    /// [`Error::NotBegun`] if the manager has no fetch in flight; [`Error::NoSuch`].
    pub fn fetched(
        &mut self,
        manager: ManagerId,
        bytes: &[u8; MAILBOX_BYTES],
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        let Manager { channel, stage } = *self.manager(manager)?;
        if stage != Stage::Fetch {
            return Err(Error::NotBegun("a fetch"));
        }
        let mailbox = Mailbox { channel, direction: manager.direction };
        let drop = |reason| CardEffect::Drop { mailbox, reason };
        match Message::decode(bytes) {
            Err(error) => effects.push(drop(DropReason::Malformed(error))),
            // After two doorbells, the second fetch may read the same message again.
            Ok(message) if message.stamp == self.lane(mailbox).read => {}
            Ok(message) => {
                self.lane_mut(mailbox).read = message.stamp;
                let known = match mailbox.direction {
                    Direction::ToCard => self.request(manager, mailbox, &message, effects),
                    Direction::ToHost => self.answer(manager, mailbox, &message, effects),
                };
                if !known {
                    effects.push(drop(DropReason::Unexpected(message.body.name())));
                }
            }
        }
        if self.manager(manager)?.stage == Stage::Fetch {
            self.release(manager, effects);
        }
        Ok(())
    }

    /// Handles a message in the mailbox to the card. Returns whether it is valid in this state.
    fn request(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        message: &Message,
        effects: &mut Vec<CardEffect>,
    ) -> bool {
        let channel = mailbox.channel as usize;
        let bound = self.slots[channel].target.is_some() && !self.slots[channel].closing;
        let lane = self.lane_mut(mailbox);
        let new = lane.exchange != message.exchange;
        match (message.body, lane.state) {
            (Body::Direct(_), LaneState::Idle) if new && bound => {
                self.park(manager, mailbox, message, effects)
            }
            (Body::Pages(list), LaneState::Idle) if new && bound && list.before == 0 => {
                self.park(manager, mailbox, message, effects);
            }
            (Body::Pages(list), LaneState::Met { done }) if !new => {
                return list.before == done && self.list(manager, mailbox, list, effects);
            }
            // The host may have overwritten the message with its withdrawal before a manager fetched the message.
            (Body::Cancel, LaneState::Idle) if new && bound => {
                self.withdraw(manager, mailbox, message, effects)
            }
            (Body::Cancel, LaneState::Parked(_)) if !new && self.user(mailbox).is_none() => {
                self.withdraw(manager, mailbox, message, effects);
            }
            // The withdrawal is too late: the reader has met the message, or the reply is in flight.
            (Body::Cancel, _) if !new => {}
            (Body::GiveUp, LaneState::Met { done }) if !new => self.abandon(manager, mailbox, done, effects),
            (Body::Subscribe(target), LaneState::Idle) if new && self.slots[channel].target.is_none() => {
                self.lane_mut(mailbox).exchange = message.exchange;
                self.subscribe(manager, mailbox, target, effects);
            }
            (Body::Close, LaneState::Idle) if new && bound => {
                self.lane_mut(mailbox).exchange = message.exchange;
                self.slots[channel].closing = true;
                if self.can_close(mailbox.channel) {
                    self.finish_close(manager, mailbox, effects);
                }
            }
            _ => return false,
        }
        true
    }

    /// Handles the host's answer, in the mailbox to the host. Returns whether it is valid in this state.
    fn answer(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        message: &Message,
        effects: &mut Vec<CardEffect>,
    ) -> bool {
        let lane = self.lane(mailbox);
        if lane.exchange != message.exchange {
            return false;
        }
        let offered = matches!(lane.state, LaneState::Offered { .. } | LaneState::Withdrawn);
        match (message.body, lane.state) {
            (Body::Reply(reply), _) if offered => self.received(mailbox, reply, effects),
            (Body::Pages(list), _) if offered && list.before == 0 => {
                self.list(manager, mailbox, list, effects)
            }
            (Body::Pages(list), LaneState::Met { done }) if list.before == done => {
                self.list(manager, mailbox, list, effects)
            }
            (Body::GiveUp, LaneState::Met { done }) => {
                self.abandon(manager, mailbox, done, effects);
                true
            }
            _ => false,
        }
    }

    /// Gives a message to its target's reader. If no reader waits, the message stays in the mailbox until a reader
    /// calls.
    fn park(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        message: &Message,
        effects: &mut Vec<CardEffect>,
    ) {
        let lane = self.lane_mut(mailbox);
        lane.exchange = message.exchange;
        lane.state = LaneState::Parked(message.body);
        // A reader that took another channel's message is no longer at this target.
        if self.user(mailbox).is_some() {
            self.meet(mailbox);
            self.serve_reader(manager, mailbox, effects);
        }
    }

    fn withdraw(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        message: &Message,
        effects: &mut Vec<CardEffect>,
    ) {
        self.lane_mut(mailbox).exchange = message.exchange;
        self.finish(manager, mailbox, Reply::new(Status::Cancelled), effects);
    }

    /// Begins the DMAs of a page list. Returns false if kind or size of the message differ from those of the context's
    /// call.
    fn list(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        list: PageList,
        effects: &mut Vec<CardEffect>,
    ) -> bool {
        let (context, _, want) = self.party(mailbox);
        if !matches!(want, Want::Indirect(_)) || want.bytes() != list.size {
            return false;
        }
        self.stop_timer(context);
        let state = LaneState::Met { done: list.before };
        self.lane_mut(mailbox).state = state;
        self.begin_list(manager, mailbox, list, effects);
        true
    }

    /// Ends the exchange of a message that the host has given up, because a page list failed too often.
    fn abandon(&mut self, manager: ManagerId, mailbox: Mailbox, done: u32, effects: &mut Vec<CardEffect>) {
        let (context, guard, want) = self.party(mailbox);
        let outstanding = want.bytes() - done;
        self.end(context, guard, Err(Failure::Dma { done, outstanding }), effects);
        self.finish(manager, mailbox, Reply::new(Status::Abandoned), effects);
    }

    /// Handles the host's reply to a message of the card. Returns whether the reply is valid for this message.
    fn received(&mut self, mailbox: Mailbox, reply: Reply, effects: &mut Vec<CardEffect>) -> bool {
        let (context, _, want) = self.party(mailbox);
        let result = match (reply.status, want) {
            (Status::Ok, Want::Direct(bytes)) => Ok(Completion::bytes(bytes)),
            (Status::Cancelled, _) => Err(Failure::Timeout),
            (Status::PinFailed, _) => Err(Failure::Pin),
            (Status::SizeMismatch, _) => {
                Err(Failure::SizeMismatch { sent: want.bytes(), expected: reply.expected })
            }
            (Status::KindMismatch, _) => Err(Failure::KindMismatch { sent: want.kind() }),
            _ => return false,
        };
        self.lane_mut(mailbox).state = LaneState::Idle;
        self.end(context, 0, result, effects);
        true
    }

    fn subscribe(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        id: TargetId,
        effects: &mut Vec<CardEffect>,
    ) {
        let status = match self.by_id.get(&id).copied() {
            None => Status::UnknownTarget,
            Some(target) if self.targets[target as usize].channel.is_some() => Status::TargetTaken,
            Some(target) => {
                self.targets[target as usize].channel = Some(mailbox.channel);
                self.slots[mailbox.channel as usize].target = Some(target);
                Status::Ok
            }
        };
        self.finish(manager, mailbox, Reply::new(status), effects);
        if status == Status::Ok {
            // A writer that called before the host subscribed can be served now.
            self.schedule(Mailbox { direction: Direction::ToHost, ..mailbox }, effects);
        }
    }

    /// Whether a channel can close: no write manager serves it, and no doorbell for its mailbox to the host has rung.
    /// After such a ring, the mailbox may have the host's last reply.
    pub(super) fn can_close(&self, channel: u16) -> bool {
        let lane = &self.slots[channel as usize].to_host;
        !lane.served && !lane.rung
    }

    /// Closes a channel. The calls that wait at its target fail, and the target is free for another channel.
    pub(super) fn finish_close(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        effects: &mut Vec<CardEffect>,
    ) {
        let slot = &mut self.slots[mailbox.channel as usize];
        slot.closing = false;
        slot.to_host.state = LaneState::Idle;
        let target = slot.target.take().expect("a channel that is closed has a target") as usize;
        self.targets[target].channel = None;
        let waiting = [self.targets[target].reader, self.targets[target].writer];
        for (index, context) in waiting.into_iter().enumerate().filter_map(|(i, c)| Some((i, c?))) {
            let id = self.targets[target].id;
            let guards = &self.contexts[context.0 as usize].guards;
            let guard = if index == 0 { guards.iter().position(|g| g.from == id).unwrap_or(0) } else { 0 };
            self.end(context, guard, Err(Failure::Closed), effects);
        }
        self.finish(manager, mailbox, Reply::new(Status::Ok), effects);
    }
}
