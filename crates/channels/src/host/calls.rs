//! The threads' calls. All arguments of a call are checked before the call changes any state.

use super::{Call, Host, HostEffect, Lane, Phase, Slot, SlotState, Thread};
use crate::{
    Body, Buffer, Channel, Completion, Deadline, Direction, Error, Failure, Guard, PAYLOAD_BYTES, Page,
    Payload, TargetId, ThreadId, Want,
};

impl Host {
    /// Subscribes to a target, and opens the channel. The call ends when the card has answered. If the card refuses, the call fails with
    /// [`Failure::UnknownTarget`] or [`Failure::TargetTaken`].
    ///
    /// # Errors
    /// [`Error::NoSpace`] if all channels are open; [`Error::Blocked`] or [`Error::NoSuch`] for the thread.
    pub fn subscribe(
        &mut self,
        thread: ThreadId,
        target: TargetId,
        effects: &mut Vec<HostEffect>,
    ) -> Result<Channel, Error> {
        self.check_thread(thread)?;
        let free = self.slots.iter().position(|slot| slot.state == SlotState::Free);
        let limit = self.limits.channels;
        if free.is_none() && self.slots.len() >= limit as usize {
            return Err(Error::NoSpace { what: "channel", name: "channels", limit: limit.into() });
        }
        let index = free.unwrap_or_else(|| {
            let (to_card, to_host) = (Lane::default(), Lane::default());
            // Generations begin at one, so zero bits never name an open channel.
            self.slots.push(Slot { generation: 1, state: SlotState::Free, to_card, to_host });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        slot.state = SlotState::Subscribing;
        slot.to_card.user = Some(thread);
        let channel = Channel { index: index as u16, generation: slot.generation };
        self.begin(thread, Call::Subscribe(channel), None);
        self.post_next(channel.mailbox(Direction::ToCard), Body::Subscribe(target), effects);
        Ok(channel)
    }

    /// Closes a channel. The call ends when the card has released the channel. If a process of the card waits at the
    /// target, its call fails with [`Failure::Closed`].
    ///
    /// # Errors
    /// [`Error::Busy`] if a thread is blocked on the channel; [`Error::Stale`]; [`Error::Blocked`] or [`Error::NoSuch`]
    /// for the thread.
    pub fn close(
        &mut self,
        thread: ThreadId,
        channel: Channel,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        self.check_thread(thread)?;
        self.check_free(channel, Direction::ToCard)?;
        self.check_free(channel, Direction::ToHost)?;
        let slot = &mut self.slots[channel.index as usize];
        slot.state = SlotState::Closing;
        slot.to_card.user = Some(thread);
        self.begin(thread, Call::Close(channel), None);
        self.post_next(channel.mailbox(Direction::ToCard), Body::Close, effects);
        Ok(())
    }

    /// Sends a direct message of 1 to 56 bytes. The call ends when the target has received it.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::DirectTooLong`]; [`Error::Busy`] if another thread is sending on the channel;
    /// [`Error::Stale`]; [`Error::Blocked`] or [`Error::NoSuch`] for the thread.
    pub fn send(
        &mut self,
        thread: ThreadId,
        channel: Channel,
        bytes: &[u8],
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        self.check_thread(thread)?;
        self.check_free(channel, Direction::ToCard)?;
        let payload = Payload::new(bytes).ok_or(Error::DirectTooLong(bytes.len() as u64))?;
        let want = Want::Direct(payload.len() as u32);
        self.check_want(want)?;
        self.begin(thread, Call::Send(channel, want, Phase::Waiting), deadline);
        self.slots[channel.index as usize].to_card.user = Some(thread);
        self.post_next(channel.mailbox(Direction::ToCard), Body::Direct(payload), effects);
        Ok(())
    }

    /// Pins the pages of a buffer, and sends its bytes as an indirect message. The call ends when the target has
    /// received all bytes and the pages are unpinned. The deadline limits the wait for the target, but not the
    /// transfer.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::TooLong`]; and those of [`Host::send`].
    pub fn send_indirect(
        &mut self,
        thread: ThreadId,
        channel: Channel,
        buffer: Buffer,
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        self.check_thread(thread)?;
        self.check_free(channel, Direction::ToCard)?;
        let want = Want::Indirect(buffer);
        self.check_want(want)?;
        self.begin(thread, Call::Send(channel, want, Phase::Pinning { expired: false }), deadline);
        self.slots[channel.index as usize].to_card.user = Some(thread);
        effects.push(HostEffect::Pin { thread, buffer });
        Ok(())
    }

    /// Receives a direct message of exactly `bytes` bytes.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::DirectTooLong`]; [`Error::Busy`] if another thread is receiving on the channel;
    /// [`Error::Stale`]; [`Error::Blocked`] or [`Error::NoSuch`] for the thread.
    pub fn receive(
        &mut self,
        thread: ThreadId,
        channel: Channel,
        bytes: u32,
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        self.select(thread, &[Guard { from: channel, want: Want::Direct(bytes) }], deadline, effects)
    }

    /// Receives an indirect message of exactly the buffer's size. The buffer's pages are pinned at once, even before
    /// the sender calls. The deadline limits the wait for the sender.
    ///
    /// # Errors
    /// [`Error::ZeroSize`], [`Error::TooLong`]; and those of [`Host::receive`].
    pub fn receive_indirect(
        &mut self,
        thread: ThreadId,
        channel: Channel,
        buffer: Buffer,
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        let guards = [Guard { from: channel, want: Want::Indirect(buffer) }];
        self.begin_receive(thread, &guards, Phase::Pinning { expired: false }, deadline)?;
        effects.push(HostEffect::Pin { thread, buffer });
        Ok(())
    }

    /// Receives from the first channel, in the order of the guards, that has a message (`PRI ALT` of occam). For
    /// fairness, rotate the guards after each call. [`HostEffect::Wake`] has the index of the guard. If the guard is
    /// indirect, only its buffer is pinned.
    ///
    /// # Errors
    /// [`Error::NoGuards`], [`Error::RepeatedGuard`]; and those of [`Host::receive`] for any guard.
    pub fn select(
        &mut self,
        thread: ThreadId,
        guards: &[Guard<Channel>],
        deadline: Deadline,
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        self.begin_receive(thread, guards, Phase::Waiting, deadline)?;
        self.meet_parked(thread, effects);
        Ok(())
    }

    /// Reports that the pages of a thread's buffer are pinned. `pages` lists these pages in order.
    ///
    /// # Errors
    /// [`Error::Pages`] if the pages together do not have the buffer's size; [`Error::NotBegun`] if no buffer of the
    /// thread is being pinned.
    pub fn pinned(
        &mut self,
        thread: ThreadId,
        pages: &[Page],
        effects: &mut Vec<HostEffect>,
    ) -> Result<(), Error> {
        let (buffer, phase) = self.pinning(thread)?;
        let bytes = pages.iter().map(|page| u64::from(page.bytes())).sum();
        if bytes != u64::from(buffer.bytes) {
            return Err(Error::Pages { bytes, buffer: buffer.bytes });
        }
        let transfer = &mut self.thread_mut(thread).transfer;
        transfer.pinned = true;
        transfer.size = buffer.bytes;
        transfer.pages.extend_from_slice(pages);
        match phase {
            Phase::Pinning { expired: true } => self.end(thread, 0, Err(Failure::Timeout), effects),
            Phase::Committed(guard) => {
                self.set_phase(thread, Phase::Moving(guard));
                self.post_list(thread, effects);
            }
            _ => {
                self.set_phase(thread, Phase::Waiting);
                match self.thread_mut(thread).call {
                    Call::Receive(_) => self.meet_parked(thread, effects),
                    _ => self.post_list(thread, effects),
                }
            }
        }
        Ok(())
    }

    /// Reports that the pages of a thread's buffer could not be pinned. The call fails with [`Failure::Pin`]. If the
    /// thread is a receiver that has taken a sender's message, the sender's call also fails with [`Failure::Pin`].
    ///
    /// # Errors
    /// [`Error::NotBegun`] if no buffer of the thread is being pinned.
    pub fn pin_failed(&mut self, thread: ThreadId, effects: &mut Vec<HostEffect>) -> Result<(), Error> {
        let (_, phase) = self.pinning(thread)?;
        let mut guard = 0;
        if let Phase::Committed(index) = phase {
            guard = index;
            let mailbox = self.threads[thread.0 as usize].guards[index].from.mailbox(Direction::ToHost);
            self.refuse(mailbox, crate::Status::PinFailed, effects);
        }
        self.end(thread, guard, Err(Failure::Pin), effects);
        Ok(())
    }

    /// Advances the clock to `now` and expires deadlines. The call of a waiting receiver ends with [`Failure::Timeout`]
    /// at once. For a waiting sender, the host asks the card to withdraw the message, but a process may already have
    /// received it. If a call's buffer is being pinned, the call ends with [`Failure::Timeout`] when the buffer is
    /// pinned.
    pub fn tick(&mut self, now: u64, effects: &mut Vec<HostEffect>) {
        while let Some(thread) = self.timers.expire(now) {
            self.thread_mut(thread).deadline = None;
            match self.thread_mut(thread).call {
                Call::Send(_, _, Phase::Pinning { .. }) | Call::Receive(Phase::Pinning { .. }) => {
                    self.set_phase(thread, Phase::Pinning { expired: true });
                }
                Call::Send(channel, _, Phase::Waiting) => {
                    self.set_phase(thread, Phase::Cancelling);
                    let mailbox = channel.mailbox(Direction::ToCard);
                    let exchange = self.lane_mut(mailbox).exchange;
                    self.post(mailbox, exchange, Body::Cancel, effects);
                }
                Call::Receive(Phase::Waiting) => self.end(thread, 0, Err(Failure::Timeout), effects),
                call => unreachable!("{call:?} has stopped its timer"),
            }
        }
    }

    /// Returns the buffer being pinned for a thread, and the phase of its call.
    fn pinning(&self, thread: ThreadId) -> Result<(Buffer, Phase), Error> {
        let not_begun = Error::NotBegun("a pinning");
        let state = self.threads.get(thread.0 as usize).ok_or(not_begun)?;
        let (want, phase) = match state.call {
            Call::Send(_, want, phase @ Phase::Pinning { .. }) => (want, phase),
            Call::Receive(phase @ Phase::Pinning { .. }) => (state.guards[0].want, phase),
            Call::Receive(phase @ Phase::Committed(guard)) => (state.guards[guard].want, phase),
            _ => return Err(not_begun),
        };
        match want {
            Want::Indirect(buffer) => Ok((buffer, phase)),
            Want::Direct(_) => Err(not_begun),
        }
    }

    fn begin_receive(
        &mut self,
        thread: ThreadId,
        guards: &[Guard<Channel>],
        phase: Phase,
        deadline: Deadline,
    ) -> Result<(), Error> {
        self.check_thread(thread)?;
        if guards.is_empty() {
            return Err(Error::NoGuards);
        }
        for (index, guard) in guards.iter().enumerate() {
            self.check_want(guard.want)?;
            self.check_free(guard.from, Direction::ToHost)?;
            if guards[..index].iter().any(|earlier| earlier.from == guard.from) {
                return Err(Error::RepeatedGuard(index as u16));
            }
        }
        self.begin(thread, Call::Receive(phase), deadline);
        self.thread_mut(thread).guards.extend_from_slice(guards);
        for guard in guards {
            self.slots[guard.from.index as usize].to_host.user = Some(thread);
        }
        Ok(())
    }

    /// Takes the parked message of the first of a receiver's guards that has one.
    fn meet_parked(&mut self, thread: ThreadId, effects: &mut Vec<HostEffect>) {
        let guards = &self.threads[thread.0 as usize].guards;
        let waits = |guard: &Guard<Channel>| self.slots[guard.from.index as usize].to_host.parked.is_some();
        if let Some(index) = guards.iter().position(waits) {
            self.meet(thread, index, effects);
        }
    }

    fn begin(&mut self, thread: ThreadId, call: Call, deadline: Deadline) {
        if self.threads.len() <= thread.0 as usize {
            self.threads.resize_with(thread.0 as usize + 1, Thread::default);
        }
        let state = self.thread_mut(thread);
        state.call = call;
        state.deadline = deadline;
        if let Some(at) = deadline {
            self.timers.start(at, thread);
        }
    }

    pub(super) fn set_phase(&mut self, thread: ThreadId, to: Phase) {
        match &mut self.thread_mut(thread).call {
            Call::Send(_, _, phase) | Call::Receive(phase) => *phase = to,
            call => unreachable!("{call:?} has no phases"),
        }
    }

    fn check_thread(&self, thread: ThreadId) -> Result<(), Error> {
        let count = self.limits.threads;
        if thread.0 >= count {
            return Err(Error::NoSuch { what: "thread", number: thread.0.into(), count: count.into() });
        }
        if self.is_blocked(thread) {
            return Err(Error::Blocked { what: "thread", number: thread.0 });
        }
        Ok(())
    }

    /// Checks that a channel is open, and that no thread is blocked in a call on this direction.
    fn check_free(&self, channel: Channel, direction: Direction) -> Result<(), Error> {
        let slot = self.slots.get(channel.index as usize).ok_or(Error::Stale)?;
        if slot.generation != channel.generation || slot.state != SlotState::Open {
            return Err(Error::Stale);
        }
        let doing = if direction == Direction::ToCard { "sending on" } else { "receiving on" };
        slot.lane(direction).user.map_or(Ok(()), |_| Err(Error::Busy { doing }))
    }

    fn check_want(&self, want: Want) -> Result<(), Error> {
        let limit = self.limits.message_bytes;
        match (want, want.bytes()) {
            (_, 0) => Err(Error::ZeroSize),
            (Want::Direct(n), _) if n as usize > PAYLOAD_BYTES => Err(Error::DirectTooLong(n.into())),
            (Want::Indirect(_), bytes) if bytes > limit => Err(Error::TooLong { bytes: bytes.into(), limit }),
            _ => Ok(()),
        }
    }

    /// Ends a call that transfers no bytes: a subscription or a close.
    pub(super) fn end_plain(
        &mut self,
        thread: ThreadId,
        failure: Option<Failure>,
        effects: &mut Vec<HostEffect>,
    ) {
        self.end(thread, 0, failure.map_or(Ok(Completion::bytes(0)), Err), effects);
    }
}
