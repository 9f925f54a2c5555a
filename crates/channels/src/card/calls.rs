//! The contexts' calls. All arguments of a call are checked before the call changes any state.

use super::{Call, Card, CardEffect, Context, LaneState};
use crate::{
    Buffer, CARD_ADDRESS_BITS, ContextId, Deadline, Direction, Error, Failure, Guard, Mailbox, PAYLOAD_BYTES,
    Payload, TargetId, Want,
};

impl Card {
    /// `channel_write`: sends a direct message of 1 to 56 bytes to the host. The call ends when a thread has received
    /// the message. A context may call `channel_write` before the host has subscribed.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::DirectTooLong`]; [`Error::UnknownTarget`]; [`Error::Busy`] if another context is
    /// writing to the target; [`Error::Blocked`] or [`Error::NoSuch`] for the context.
    pub fn write(
        &mut self,
        context: ContextId,
        target: TargetId,
        bytes: &[u8],
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        let payload = Payload::new(bytes).ok_or(Error::DirectTooLong(bytes.len() as u64))?;
        self.begin_write(context, target, Want::Direct(payload.len() as u32), payload, deadline, effects)
    }

    /// `channel_write_ind`: sends an indirect message from a memory of the card. The deadline limits the wait for the
    /// host, but not the transfer.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::TooLong`], [`Error::CardAddress`]; and those of [`Card::write`].
    pub fn write_indirect(
        &mut self,
        context: ContextId,
        target: TargetId,
        buffer: Buffer,
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        self.begin_write(context, target, Want::Indirect(buffer), Payload::EMPTY, deadline, effects)
    }

    /// `channel_read`: receives a direct message of exactly `bytes` bytes from the host.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::DirectTooLong`]; [`Error::UnknownTarget`]; [`Error::Busy`] if another context is
    /// reading from the target; [`Error::Blocked`] or [`Error::NoSuch`] for the context.
    pub fn read(
        &mut self,
        context: ContextId,
        target: TargetId,
        bytes: u32,
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        self.select(context, &[Guard { from: target, want: Want::Direct(bytes) }], deadline, effects)
    }

    /// `channel_read_ind`: receives an indirect message into a memory of the card. The message must have exactly the
    /// buffer's size.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::TooLong`], [`Error::CardAddress`]; and those of [`Card::read`].
    pub fn read_indirect(
        &mut self,
        context: ContextId,
        target: TargetId,
        buffer: Buffer,
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        self.select(context, &[Guard { from: target, want: Want::Indirect(buffer) }], deadline, effects)
    }

    /// Receives from the first target, in the order of the guards, that has a message in its mailbox (`PRI ALT` of
    /// occam). For fairness, rotate the guards after each call. [`CardEffect::Signal`] has the index of the guard.
    ///
    /// # Errors
    /// [`Error::NoGuards`], [`Error::RepeatedGuard`]; and those of [`Card::read`] for any guard.
    pub fn select(
        &mut self,
        context: ContextId,
        guards: &[Guard<TargetId>],
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        self.check_context(context)?;
        if guards.is_empty() {
            return Err(Error::NoGuards);
        }
        for (index, guard) in guards.iter().enumerate() {
            self.check_want(guard.want)?;
            if self.targets[self.target(guard.from)? as usize].reader.is_some() {
                return Err(Error::Busy { doing: "reading from" });
            }
            if guards[..index].iter().any(|earlier| earlier.from == guard.from) {
                return Err(Error::RepeatedGuard(index as u16));
            }
        }
        self.begin(context, Call::Read { met: None }, deadline);
        self.contexts[context.0 as usize].guards.extend_from_slice(guards);
        for guard in guards {
            let target = self.by_id[&guard.from] as usize;
            self.targets[target].reader = Some(context);
        }
        // The reader takes the first parked message now. A manager delivers it later.
        for guard in guards {
            let channel = self.targets[self.by_id[&guard.from] as usize].channel;
            let mailbox = channel.map(|channel| Mailbox { channel, direction: Direction::ToCard });
            if let Some(mailbox) = mailbox.filter(|m| matches!(self.lane(*m).state, LaneState::Parked(_))) {
                self.meet(mailbox);
                self.schedule(mailbox, effects);
                break;
            }
        }
        Ok(())
    }

    /// Advances the clock to `now` and expires deadlines. A reader's call ends with [`Failure::Timeout`] at once. So
    /// does a writer's call, if no manager has begun to collect the message. For any other writer, the card asks the
    /// host to withdraw the message, but a thread may already have received it.
    pub fn tick(&mut self, now: u64, effects: &mut Vec<CardEffect>) {
        while let Some(context) = self.timers.expire(now) {
            self.contexts[context.0 as usize].deadline = None;
            let Call::Write { target, .. } = self.contexts[context.0 as usize].call else {
                self.end(context, 0, Err(Failure::Timeout), effects);
                continue;
            };
            let channel = self.targets[target as usize].channel;
            let mailbox = channel.map(|channel| Mailbox { channel, direction: Direction::ToHost });
            match mailbox.filter(|m| self.lane(*m).state != LaneState::Idle) {
                None => self.end(context, 0, Err(Failure::Timeout), effects),
                Some(mailbox) => {
                    self.lane_mut(mailbox).state = LaneState::Offered { withdraw: true };
                    self.schedule(mailbox, effects);
                }
            }
        }
    }

    fn begin_write(
        &mut self,
        context: ContextId,
        target: TargetId,
        want: Want,
        payload: Payload,
        deadline: Deadline,
        effects: &mut Vec<CardEffect>,
    ) -> Result<(), Error> {
        self.check_context(context)?;
        self.check_want(want)?;
        let target = self.target(target)?;
        if self.targets[target as usize].writer.is_some() {
            return Err(Error::Busy { doing: "writing to" });
        }
        self.begin(context, Call::Write { target, want, payload }, deadline);
        self.targets[target as usize].writer = Some(context);
        if let Some(channel) = self.targets[target as usize].channel {
            self.schedule(Mailbox { channel, direction: Direction::ToHost }, effects);
        }
        Ok(())
    }

    fn begin(&mut self, context: ContextId, call: Call, deadline: Deadline) {
        if self.contexts.len() <= context.0 as usize {
            self.contexts.resize_with(context.0 as usize + 1, Context::default);
        }
        let state = &mut self.contexts[context.0 as usize];
        state.call = call;
        state.deadline = deadline;
        if let Some(at) = deadline {
            self.timers.start(at, context);
        }
    }

    fn check_context(&self, context: ContextId) -> Result<(), Error> {
        let count = self.limits.contexts;
        if context.0 >= count {
            return Err(Error::NoSuch { what: "context", number: context.0.into(), count: count.into() });
        }
        if self.is_blocked(context) {
            return Err(Error::Blocked { what: "context", number: context.0 });
        }
        Ok(())
    }

    fn target(&self, id: TargetId) -> Result<u16, Error> {
        self.by_id.get(&id).copied().ok_or(Error::UnknownTarget(id))
    }

    fn check_want(&self, want: Want) -> Result<(), Error> {
        let limit = self.limits.message_bytes;
        match want {
            Want::Direct(0) | Want::Indirect(Buffer { bytes: 0, .. }) => Err(Error::ZeroSize),
            Want::Direct(n) if n as usize > PAYLOAD_BYTES => Err(Error::DirectTooLong(n.into())),
            Want::Indirect(Buffer { bytes, .. }) if bytes > limit => {
                Err(Error::TooLong { bytes: bytes.into(), limit })
            }
            Want::Indirect(Buffer { address, bytes })
                if address.saturating_add(bytes.into()) > 1 << CARD_ADDRESS_BITS =>
            {
                Err(Error::CardAddress { address, bytes })
            }
            _ => Ok(()),
        }
    }
}
