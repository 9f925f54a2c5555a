//! Handles the messages in mailboxes that the card has written. One interrupt serves all of these mailboxes, in the
//! order of arrival.

use super::{Call, Host, HostEffect, Offered, OfferedBody, Phase, SlotState};
use crate::{
    Body, Completion, Direction, DropReason, Error, Failure, MAILBOX_BYTES, Mailbox, Message, Reply, Status,
    ThreadId, Want, error::mismatch,
};

impl Host {
    /// Accepts the card's write of the host's copy of a mailbox. The next [`Host::interrupt`] reads it.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if no channel has had this number.
    pub fn deposit(&mut self, mailbox: Mailbox, bytes: &[u8; MAILBOX_BYTES]) -> Result<(), Error> {
        self.slot_of(mailbox)?;
        let lane = self.lane_mut(mailbox);
        lane.inbox = *bytes;
        if !std::mem::replace(&mut lane.arrived, true) {
            self.arrived.push(mailbox);
        }
        Ok(())
    }

    /// Serves the card's interrupt for the oldest unread mailbox, and returns that mailbox. It is for a driver with an
    /// interrupt handler that runs once per message.
    pub fn interrupt_one(&mut self, effects: &mut Vec<HostEffect>) -> Option<Mailbox> {
        let mailbox = (!self.arrived.is_empty()).then(|| self.arrived.remove(0))?;
        self.look(mailbox, effects);
        Some(mailbox)
    }

    /// Serves the card's interrupt: reads every mailbox written since the last interrupt. An interrupt without a new
    /// mailbox has no effect: the previous interrupt may have served its mailbox.
    pub fn interrupt(&mut self, effects: &mut Vec<HostEffect>) {
        let mut arrived = std::mem::take(&mut self.arrived);
        for mailbox in arrived.drain(..) {
            self.look(mailbox, effects);
        }
        self.arrived = arrived;
    }

    fn look(&mut self, mailbox: Mailbox, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        // If the channel has been closed since, its mailbox is not read.
        if std::mem::take(&mut lane.arrived) {
            let bytes = lane.inbox;
            if let Err(reason) = self.read(mailbox, &bytes, effects) {
                effects.push(HostEffect::Drop { mailbox, reason });
            }
        }
    }

    fn read(
        &mut self,
        mailbox: Mailbox,
        bytes: &[u8; MAILBOX_BYTES],
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), DropReason> {
        let message = Message::decode(bytes).map_err(DropReason::Malformed)?;
        let lane = self.lane_mut(mailbox);
        if lane.read == message.stamp {
            return Ok(());
        }
        lane.read = message.stamp;
        let unexpected = Err(DropReason::Unexpected(message.body.name()));
        match self.slots[mailbox.channel as usize].state {
            SlotState::Free => return unexpected,
            // A channel that is being closed has no receiver, so messages of the card on it are ignored.
            SlotState::Closing if mailbox.direction == Direction::ToHost => return Ok(()),
            SlotState::Subscribing | SlotState::Open | SlotState::Closing => {}
        }
        let next = self.lane_mut(mailbox).exchange != message.exchange;
        if mailbox.direction == Direction::ToHost && next && !self.conclude(mailbox, effects) {
            return unexpected;
        }
        let known = match (mailbox.direction, message.body) {
            (_, Body::Reply(reply)) => self.replied(mailbox, message.exchange, reply, effects),
            (Direction::ToHost, Body::Direct(payload)) => self.offered(
                mailbox,
                Offered { exchange: message.exchange, what: OfferedBody::Direct(payload) },
                effects,
            ),
            (Direction::ToHost, Body::Offer(size)) => self.offered(
                mailbox,
                Offered { exchange: message.exchange, what: OfferedBody::Indirect(size) },
                effects,
            ),
            (Direction::ToHost, Body::Cancel) => {
                self.withdrawn(mailbox, message.exchange, effects);
                true
            }
            _ => false,
        };
        if known { Ok(()) } else { unexpected }
    }

    /// Handles a sender's next message while the receiver's thread still waits for the last reply of the previous
    /// message. The card may have overwritten this reply. If the last page list was in flight, the receiver's call
    /// succeeds. If the host has given the message up, the call fails. Returns false if the sender's call cannot have
    /// ended yet, because the buffer is being pinned or page lists are left.
    fn conclude(&mut self, mailbox: Mailbox, effects: &mut Vec<HostEffect>) -> bool {
        let Some(thread) = self.lane_mut(mailbox).user else { return true };
        match self.threads[thread.0 as usize].call {
            Call::Receive(Phase::Committed(_)) => false,
            Call::Receive(Phase::Moving(guard)) => self.last_list_done(thread, guard, effects),
            Call::Receive(Phase::GivingUp(guard)) => {
                self.gave_up(thread, guard, effects);
                true
            }
            _ => true,
        }
    }

    /// Gives a message from the card to the waiting receiver, or parks it until a receiver calls. Returns whether the
    /// message is valid in the current state.
    fn offered(&mut self, mailbox: Mailbox, offered: Offered, effects: &mut Vec<HostEffect>) -> bool {
        let lane = self.lane_mut(mailbox);
        if lane.parked.is_some() || lane.exchange == offered.exchange {
            return false;
        }
        lane.parked = Some(offered);
        if let Some(thread) = lane.user {
            let state = &self.threads[thread.0 as usize];
            if state.call == Call::Receive(Phase::Waiting) {
                let guard = state.guards.iter().position(|guard| guard.from.index == mailbox.channel);
                self.meet(thread, guard.expect("the lane's user has a guard for it"), effects);
            }
        }
        true
    }

    /// Handles the withdrawal of a sender on the card. If a thread has already received the message, the host does
    /// nothing, because its reply has arrived or is in flight.
    fn withdrawn(&mut self, mailbox: Mailbox, exchange: u16, effects: &mut Vec<HostEffect>) {
        let lane = self.lane_mut(mailbox);
        if lane.exchange != exchange {
            lane.exchange = exchange;
            lane.parked = None;
            self.refuse(mailbox, Status::Cancelled, effects);
        }
    }

    /// Gives a parked message to its receiver. The receiver leaves the channels of its other guards.
    pub(super) fn meet(&mut self, thread: ThreadId, guard: usize, effects: &mut Vec<HostEffect>) {
        self.stop_timer(thread);
        self.leave(thread, Some(guard));
        let taken = self.threads[thread.0 as usize].guards[guard];
        let mailbox = taken.from.mailbox(Direction::ToHost);
        let lane = self.lane_mut(mailbox);
        let Offered { exchange, what } = lane.parked.take().expect("a message waits here");
        lane.exchange = exchange;
        match (what, taken.want) {
            (OfferedBody::Direct(payload), Want::Direct(bytes)) if payload.len() as u32 == bytes => {
                let reply = Reply { done: bytes, ..Reply::new(Status::Ok) };
                self.post(mailbox, exchange, Body::Reply(reply), effects);
                self.end(thread, guard, Ok(Completion { bytes, payload }), effects);
            }
            (OfferedBody::Indirect(size), Want::Indirect(buffer)) if size == buffer.bytes => {
                if self.threads[thread.0 as usize].transfer.pinned {
                    self.set_phase(thread, Phase::Moving(guard));
                    self.post_list(thread, effects);
                } else {
                    self.set_phase(thread, Phase::Committed(guard));
                    effects.push(HostEffect::Pin { thread, buffer });
                }
            }
            (what, want) => {
                let (failure, reply) = mismatch(what.as_want(), want);
                self.post(mailbox, exchange, Body::Reply(reply), effects);
                self.end(thread, guard, Err(failure), effects);
            }
        }
    }

    /// Replies to the exchange of a mailbox with a status and no counts.
    pub(super) fn refuse(&mut self, mailbox: Mailbox, status: Status, effects: &mut Vec<HostEffect>) {
        let exchange = self.lane_mut(mailbox).exchange;
        self.post(mailbox, exchange, Body::Reply(Reply::new(status)), effects);
    }

    /// Handles the card's reply. Returns whether a thread waits for this reply.
    fn replied(
        &mut self,
        mailbox: Mailbox,
        exchange: u16,
        reply: Reply,
        effects: &mut Vec<HostEffect>,
    ) -> bool {
        let lane = self.lane_mut(mailbox);
        let Some(thread) = lane.user.filter(|_| lane.exchange == exchange) else { return false };
        let state = &self.threads[thread.0 as usize];
        match (state.call, reply.status) {
            (Call::Subscribe(_), status) => return self.subscribed(mailbox, thread, status, effects),
            (Call::Close(_), Status::Ok) => {
                self.free_slot(mailbox.channel);
                self.end_plain(thread, None, effects);
            }
            (Call::Send(_, want, Phase::Waiting | Phase::Cancelling), status) => match (want, status) {
                (Want::Direct(bytes), Status::Ok) => {
                    self.end(thread, 0, Ok(Completion::bytes(bytes)), effects)
                }
                (Want::Indirect(_), Status::Ok | Status::DmaFailed) => self.list_done(thread, reply, effects),
                (_, Status::Cancelled) => self.end(thread, 0, Err(Failure::Timeout), effects),
                (_, Status::SizeMismatch) => {
                    let failure = Failure::SizeMismatch { sent: want.bytes(), expected: reply.expected };
                    self.end(thread, 0, Err(failure), effects);
                }
                (_, Status::KindMismatch) => {
                    self.end(thread, 0, Err(Failure::KindMismatch { sent: want.kind() }), effects);
                }
                _ => return false,
            },
            (
                Call::Send(_, _, Phase::Moving(_)) | Call::Receive(Phase::Moving(_)),
                Status::Ok | Status::DmaFailed,
            ) => self.list_done(thread, reply, effects),
            (
                Call::Send(_, _, Phase::GivingUp(guard)) | Call::Receive(Phase::GivingUp(guard)),
                Status::Abandoned,
            ) => self.gave_up(thread, guard, effects),
            _ => return false,
        }
        true
    }

    fn subscribed(
        &mut self,
        mailbox: Mailbox,
        thread: ThreadId,
        status: Status,
        effects: &mut Vec<HostEffect>,
    ) -> bool {
        let slot = &mut self.slots[mailbox.channel as usize];
        let asked = Message::decode(&slot.to_card.outbox).map(|m| m.body);
        let Ok(Body::Subscribe(target)) = asked else {
            unreachable!("a subscription is all that was posted")
        };
        let failure = match status {
            Status::Ok => None,
            Status::UnknownTarget => Some(Failure::UnknownTarget(target)),
            Status::TargetTaken => Some(Failure::TargetTaken(target)),
            _ => return false,
        };
        match failure {
            None => slot.state = SlotState::Open,
            Some(_) => self.free_slot(mailbox.channel),
        }
        self.end_plain(thread, failure, effects);
        true
    }

    /// Frees a channel. Its stamps and exchange numbers continue, so that an old message in its mailboxes is never
    /// taken for a new one.
    fn free_slot(&mut self, channel: u16) {
        let slot = &mut self.slots[channel as usize];
        slot.state = SlotState::Free;
        slot.generation = slot.generation.wrapping_add(1).max(1);
        slot.to_host.parked = None;
        slot.to_host.arrived = false;
        self.arrived.retain(|m| m.channel != channel);
    }
}

impl OfferedBody {
    fn as_want(self) -> Want {
        match self {
            OfferedBody::Direct(payload) => Want::Direct(payload.len() as u32),
            OfferedBody::Indirect(bytes) => Want::Indirect(crate::Buffer { address: 0, bytes }),
        }
    }
}
