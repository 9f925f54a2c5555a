//! Managers: the assignment of channels to managers, and the steps of an exchange.
//!
//! A manager takes the channel that has waited longest, does one exchange step for it, and releases it. A step begins
//! with a fetch or a collect, and ends with a push. A manager never waits for the other end. If the receiver has not
//! called, the message stays in its mailbox, and the manager serves other channels.

use super::{Call, Card, CardEffect, LaneState, Manager, Stage};
use crate::{
    Body, Completion, ContextId, Direction, Error, Mailbox, ManagerId, Message, PageList, Reply, Status,
    Want, error::mismatch,
};

impl Card {
    /// Accepts the host's doorbell for a mailbox.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the card has no such channel.
    pub fn ring(&mut self, mailbox: Mailbox, effects: &mut Vec<CardEffect>) -> Result<(), Error> {
        let (number, count) = (u32::from(mailbox.channel), u32::from(self.limits.channels));
        if number >= count {
            return Err(Error::NoSuch { what: "mailbox", number, count });
        }
        if self.slots.len() <= number as usize {
            self.slots.resize_with(number as usize + 1, Default::default);
        }
        self.lane_mut(mailbox).rung = true;
        self.schedule(mailbox, effects);
        Ok(())
    }

    /// Completes a manager's [`CardEffect::Ask`], [`CardEffect::Deliver`], [`CardEffect::Collect`] or [`CardEffect::Push`].
    ///
    /// # Errors
    /// [`Error::NotBegun`] if the manager has not begun such an action; [`Error::NoSuch`].
    pub fn done(&mut self, manager: ManagerId, effects: &mut Vec<CardEffect>) -> Result<(), Error> {
        let Manager { channel, stage } = *self.manager(manager)?;
        let mailbox = Mailbox { channel, direction: manager.direction };
        match stage {
            Stage::Ask => self.asked(manager, mailbox, effects),
            Stage::Deliver => {
                let (context, guard, want) = self.met_reader(mailbox);
                let LaneState::Parked(Body::Direct(payload)) = self.lane(mailbox).state else {
                    unreachable!("a direct message is what was delivered")
                };
                let bytes = want.bytes();
                self.end(context, guard, Ok(Completion { bytes, payload }), effects);
                self.finish(manager, mailbox, Reply { done: bytes, ..Reply::new(Status::Ok) }, effects);
            }
            Stage::Collect => match self.user(mailbox).map(|writer| self.contexts[writer.0 as usize].call) {
                Some(Call::Write { want: Want::Direct(_), payload, .. }) => {
                    self.push(manager, mailbox, Body::Direct(payload), effects);
                }
                Some(Call::Write { want: Want::Indirect(buffer), .. }) => {
                    self.push(manager, mailbox, Body::Offer(buffer.bytes), effects);
                }
                call => unreachable!("{call:?} is no writer, and a writer that was collected stays"),
            },
            Stage::Push => {
                effects.push(CardEffect::Interrupt);
                self.release(manager, effects);
            }
            Stage::Idle | Stage::Fetch | Stage::Move { .. } => {
                return Err(Error::NotBegun("an ask, deliver, collect or push"));
            }
        }
        Ok(())
    }

    /// Completes the DMA of one page. `ok` says whether the DMA succeeded.
    ///
    /// # Errors
    /// [`Error::NotBegun`] if the manager has no such DMA in flight; [`Error::NoSuch`].
    pub fn dma_done(
        &mut self,
        manager: ManagerId,
        entry: u8,
        ok: bool,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        let Manager { channel, stage } = self.manager_mut(manager)?;
        let (channel, bit) = (*channel, 1u8.checked_shl(entry.into()).unwrap_or(0));
        let Stage::Move { list, pending, failed } = stage else { return Err(Error::NotBegun("a DMA")) };
        if *pending & bit == 0 {
            return Err(Error::NotBegun("a DMA"));
        }
        *pending &= !bit;
        *failed |= !ok;
        if *pending == 0 {
            let (list, failed) = (*list, *failed);
            self.moved(manager, Mailbox { channel, direction: manager.direction }, list, failed, effects);
        }
        Ok(())
    }

    /// Queues a channel for a manager, if the channel has work and no manager serves it.
    pub(super) fn schedule(&mut self, mailbox: Mailbox, effects: &mut Vec<CardEffect>) {
        let lane = self.lane(mailbox);
        if !lane.served && !lane.queued && self.has_work(mailbox) {
            self.lane_mut(mailbox).queued = true;
            self.group_mut(mailbox.direction).ready.push_back(mailbox.channel);
            self.dispatch(mailbox.direction, effects);
        }
    }

    /// Assigns waiting channels to free managers.
    fn dispatch(&mut self, direction: Direction, effects: &mut Vec<CardEffect>) {
        loop {
            let group = self.group_mut(direction);
            let Some(index) = group.managers.iter().position(|m| m.stage == Stage::Idle) else { return };
            let Some(channel) = group.ready.pop_front() else { return };
            let (manager, mailbox) =
                (ManagerId { direction, index: index as u8 }, Mailbox { channel, direction });
            self.lane_mut(mailbox).queued = false;
            // The channel's work may have ended since the channel was queued.
            if self.has_work(mailbox) {
                self.lane_mut(mailbox).served = true;
                self.group_mut(direction).managers[index].channel = channel;
                self.begin_work(manager, mailbox, effects);
            }
        }
    }

    fn has_work(&self, mailbox: Mailbox) -> bool {
        let (lane, slot) = (self.lane(mailbox), &self.slots[mailbox.channel as usize]);
        lane.rung
            || match (mailbox.direction, lane.state) {
                (Direction::ToCard, LaneState::Parked(_)) => self.has_met_reader(mailbox),
                (Direction::ToCard, _) => slot.closing && self.can_close(mailbox.channel),
                (Direction::ToHost, LaneState::Idle) => !slot.closing && self.user(mailbox).is_some(),
                (Direction::ToHost, LaneState::Offered { withdraw }) => withdraw && !slot.closing,
                (Direction::ToHost, _) => false,
            }
    }

    /// Starts the next step of a channel.
    fn begin_work(&mut self, manager: ManagerId, mailbox: Mailbox, effects: &mut Vec<CardEffect>) {
        let lane = self.lane_mut(mailbox);
        if std::mem::take(&mut lane.rung) {
            self.set_stage(manager, Stage::Fetch);
            effects.push(CardEffect::Fetch { manager, mailbox });
            return;
        }
        match (mailbox.direction, lane.state) {
            (Direction::ToCard, LaneState::Parked(_)) => self.serve_reader(manager, mailbox, effects),
            (Direction::ToCard, _) => self.finish_close(manager, mailbox, effects),
            (Direction::ToHost, LaneState::Offered { .. }) => {
                lane.state = LaneState::Withdrawn;
                self.push(manager, mailbox, Body::Cancel, effects);
            }
            (Direction::ToHost, _) => {
                lane.state = LaneState::Offered { withdraw: false };
                lane.exchange = lane.exchange.wrapping_add(1);
                let context = self.user(mailbox).expect("a writer is the work there is");
                self.set_stage(manager, Stage::Collect);
                effects.push(CardEffect::Collect { manager, context });
            }
        }
    }

    /// Releases the channel of a manager. If the channel has more work, it goes to the end of the queue.
    pub(super) fn release(&mut self, manager: ManagerId, effects: &mut Vec<CardEffect>) {
        let channel =
            std::mem::take(&mut self.group_mut(manager.direction).managers[manager.index as usize]).channel;
        let mailbox = Mailbox { channel, direction: manager.direction };
        self.lane_mut(mailbox).served = false;
        self.schedule(mailbox, effects);
        self.dispatch(manager.direction, effects);
        if self.slots[channel as usize].closing {
            self.schedule(Mailbox { direction: Direction::ToCard, ..mailbox }, effects);
        }
    }

    /// Assigns a parked message to its reader, and removes the reader from the targets of its other guards.
    pub(super) fn meet(&mut self, mailbox: Mailbox) {
        let context = self.user(mailbox).expect("the reader has come");
        let target =
            self.slots[mailbox.channel as usize].target.expect("a channel with a reader has a target");
        let id = self.targets[target as usize].id;
        let guard = self.contexts[context.0 as usize].guards.iter().position(|guard| guard.from == id);
        let guard = guard.expect("the target's reader has a guard for it");
        self.stop_timer(context);
        self.leave(context, Some(guard));
        self.contexts[context.0 as usize].call = Call::Read { met: Some(guard) };
    }

    fn has_met_reader(&self, mailbox: Mailbox) -> bool {
        let call = self.user(mailbox).map(|reader| self.contexts[reader.0 as usize].call);
        matches!(call, Some(Call::Read { met: Some(_) }))
    }

    /// Returns the reader of a channel's message, the index of its guard, and the message that it expects.
    pub(super) fn met_reader(&self, mailbox: Mailbox) -> (ContextId, usize, Want) {
        let context = self.user(mailbox).expect("a reader that met its sender stays");
        let state = &self.contexts[context.0 as usize];
        let Call::Read { met: Some(guard) } = state.call else {
            unreachable!("the reader has met its sender")
        };
        (context, guard, state.guards[guard].want)
    }

    /// Begins the delivery of a parked message to its reader, or asks the reader for a destination.
    pub(super) fn serve_reader(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        effects: &mut Vec<CardEffect>,
    ) {
        let (context, _, want) = self.met_reader(mailbox);
        match self.lane(mailbox).state {
            LaneState::Parked(Body::Direct(payload)) if want == Want::Direct(payload.len() as u32) => {
                self.set_stage(manager, Stage::Deliver);
                effects.push(CardEffect::Deliver { manager, context, payload });
            }
            LaneState::Parked(_) => {
                self.set_stage(manager, Stage::Ask);
                effects.push(CardEffect::Ask { manager, context });
            }
            state => unreachable!("a message is parked, not {state:?}"),
        }
    }

    /// Handles the reader's answer: the destination and the expected size. Begins the DMAs, or fails both calls if size
    /// or kind differ.
    fn asked(&mut self, manager: ManagerId, mailbox: Mailbox, effects: &mut Vec<CardEffect>) {
        let (context, guard, want) = self.met_reader(mailbox);
        let sent = match self.lane(mailbox).state {
            LaneState::Parked(Body::Pages(list))
                if want.bytes() == list.size && matches!(want, Want::Indirect(_)) =>
            {
                self.lane_mut(mailbox).state = LaneState::Met { done: 0 };
                return self.begin_list(manager, mailbox, list, effects);
            }
            LaneState::Parked(Body::Pages(list)) => {
                Want::Indirect(crate::Buffer { address: 0, bytes: list.size })
            }
            LaneState::Parked(Body::Direct(payload)) => Want::Direct(payload.len() as u32),
            state => unreachable!("a message is parked, not {state:?}"),
        };
        let (failure, reply) = mismatch(sent, want);
        self.end(context, guard, Err(failure), effects);
        self.finish(manager, mailbox, reply, effects);
    }

    /// Begins one DMA per page of a list.
    pub(super) fn begin_list(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        list: PageList,
        effects: &mut Vec<CardEffect>,
    ) {
        let (_, _, want) = self.party(mailbox);
        let Want::Indirect(buffer) = want else { unreachable!("an indirect call is what met the list") };
        self.set_stage(
            manager,
            Stage::Move { list, pending: (1u8 << list.pages().len()) - 1, failed: false },
        );
        let mut card = buffer.address + u64::from(list.before);
        for (entry, page) in list.pages().iter().enumerate() {
            let (host, bytes) = (page.address(), page.bytes());
            let (entry, direction) = (entry as u8, mailbox.direction);
            effects.push(CardEffect::Dma { manager, entry, direction, host, card, bytes });
            card += u64::from(bytes);
        }
    }

    /// Replies to a page list after all its DMAs have ended. After the last list, the context's call ends.
    fn moved(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        list: PageList,
        failed: bool,
        effects: &mut Vec<CardEffect>,
    ) {
        let (context, guard, want) = self.party(mailbox);
        let done = if failed { list.before } else { list.before + list.bytes() };
        let status = if failed { Status::DmaFailed } else { Status::Ok };
        let reply = Reply { status, done, outstanding: list.size - done, expected: 0 };
        if done == list.size {
            self.end(context, guard, Ok(Completion::bytes(want.bytes())), effects);
            self.finish(manager, mailbox, reply, effects);
        } else {
            self.lane_mut(mailbox).state = LaneState::Met { done };
            self.push(manager, mailbox, Body::Reply(reply), effects);
        }
    }

    /// Returns the context that takes part in a lane's exchange, the index of its guard, and the message that it
    /// expects or sends.
    pub(super) fn party(&self, mailbox: Mailbox) -> (ContextId, usize, Want) {
        if mailbox.direction == Direction::ToCard {
            return self.met_reader(mailbox);
        }
        let context = self.user(mailbox).expect("a writer of an offered message stays");
        let Call::Write { want, .. } = self.contexts[context.0 as usize].call else {
            unreachable!("a target's writer writes")
        };
        (context, 0, want)
    }

    /// Ends the exchange of a lane with a reply.
    pub(super) fn finish(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        reply: Reply,
        effects: &mut Vec<CardEffect>,
    ) {
        self.lane_mut(mailbox).state = LaneState::Idle;
        self.push(manager, mailbox, Body::Reply(reply), effects);
    }

    /// Begins the write of a mailbox of the host.
    pub(super) fn push(
        &mut self,
        manager: ManagerId,
        mailbox: Mailbox,
        body: Body,
        effects: &mut Vec<CardEffect>,
    ) {
        let lane = self.lane_mut(mailbox);
        lane.wrote = lane.wrote.wrapping_add(1);
        let bytes = Message { exchange: lane.exchange, stamp: lane.wrote, body }.encode();
        self.set_stage(manager, Stage::Push);
        effects.push(CardEffect::Push { manager, mailbox, bytes });
    }

    pub(super) fn manager(&self, id: ManagerId) -> Result<&Manager, Error> {
        let managers = &self.group(id.direction).managers;
        let what = match id.direction {
            Direction::ToCard => "read manager",
            Direction::ToHost => "write manager",
        };
        let count = managers.len() as u32;
        managers.get(id.index as usize).ok_or(Error::NoSuch { what, number: id.index.into(), count })
    }

    fn manager_mut(&mut self, id: ManagerId) -> Result<&mut Manager, Error> {
        self.manager(id)?;
        Ok(&mut self.group_mut(id.direction).managers[id.index as usize])
    }

    fn set_stage(&mut self, id: ManagerId, stage: Stage) {
        self.group_mut(id.direction).managers[id.index as usize].stage = stage;
    }
}
