//! The initiator: memory descriptors, puts, and how an operation ends ('Memory Descriptors', 'Data Movement
//! Operations').
//!
//! An operation ends when its message has been sent and, where an acknowledgement was asked for, that is
//! here. Until then it keeps its place among [`crate::Limits::operations`], and its memory descriptor.

use crate::counter::Action;
use crate::interface::release;
use crate::{
    AckRequest, CtEvent, CtHandle, Effect, Effects, EqHandle, Error, Event, EventKind, FailType, Header,
    HeaderKind, Interface, MdHandle, MdOptions, OperationHandle,
};
use nicety_types::NodeId;

/// A memory descriptor: memory that messages are sent from (`ptl_md_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Md {
    /// Host address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Options.
    pub options: MdOptions,
    /// Where full events go, if anywhere.
    pub eq: Option<EqHandle>,
    /// What counts, if anything.
    pub ct: Option<CtHandle>,
}

/// The arguments of a put (`PtlPut`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutRequest {
    /// The memory descriptor.
    pub md: MdHandle,
    /// Where the message begins in the descriptor's memory, in bytes.
    pub local_offset: u64,
    /// Length of the message in bytes.
    pub length: u64,
    /// What to hear back.
    pub ack: AckRequest,
    /// The target's rank.
    pub target: NodeId,
    /// The portal table index at the target.
    pub pt: u32,
    /// The match bits.
    pub match_bits: u64,
    /// Where the message shall begin in the match entry's memory, in bytes; not used by an entry with
    /// [`crate::MeOptions::MANAGE_LOCAL`].
    pub remote_offset: u64,
    /// The user's word for the SEND and ACK events.
    pub user_ptr: u64,
    /// The user's word for the target's event.
    pub hdr_data: u64,
}

impl PutRequest {
    /// A put of the first `length` bytes of `md`, with everything else zero.
    pub const fn new(md: MdHandle, length: u64, target: NodeId, pt: u32, match_bits: u64) -> PutRequest {
        PutRequest {
            md,
            local_offset: 0,
            length,
            ack: AckRequest::None,
            target,
            pt,
            match_bits,
            remote_offset: 0,
            user_ptr: 0,
            hdr_data: 0,
        }
    }
}

/// A message for the card to send: a header, and `header.length` bytes of host memory from `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The operation, for [`Interface::sent`].
    pub operation: OperationHandle,
    /// The header.
    pub header: Header,
    /// Host address of the first byte of the payload.
    pub start: u64,
}

pub(crate) struct Descriptor {
    md: Md,
    /// Operations that have not ended.
    users: u32,
}

pub(crate) struct Operation {
    md: MdHandle,
    header: Header,
    start: u64,
    user_ptr: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Triggered, and not yet due.
    Waiting,
    /// With the card.
    Sending { answered: bool },
    /// Sent; the answer is missing.
    Sent,
}

impl Interface {
    /// Binds memory to send from (`PtlMDBind`).
    ///
    /// # Errors
    /// [`Error::NoSpace`]; [`Error::Stale`] for the queue or counter; [`Error::ArgInvalid`] for memory that
    /// ends beyond 2^64 or options that count without a counter.
    pub fn md_bind(&mut self, md: Md) -> Result<MdHandle, Error> {
        if md.start.checked_add(md.length).is_none() {
            return Err(Error::ArgInvalid("the descriptor's memory must end below address 2^64"));
        }
        let counts = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_ACK;
        if md.ct.is_none() && md.options.intersects(counts) {
            return Err(Error::ArgInvalid("EVENT_CT_ options of a descriptor need a counter in `ct`"));
        }
        md.eq.map(|eq| self.queues.get(eq)).transpose()?;
        md.ct.map(|ct| self.counters.get(ct)).transpose()?;
        let handle = self.descriptors.insert(Descriptor { md, users: 0 })?;
        if let Some(eq) = md.eq {
            self.queues.get_mut(eq)?.users += 1;
        }
        self.r#use(md.ct);
        Ok(handle)
    }

    /// Releases a memory descriptor (`PtlMDRelease`).
    ///
    /// # Errors
    /// [`Error::Stale`], or [`Error::InUse`] while an operation on it has not ended.
    pub fn md_release(&mut self, md: MdHandle) -> Result<(), Error> {
        release(self.descriptors.get(md)?.users, "memory descriptor", "operations that have not ended")?;
        let Descriptor { md, .. } = self.descriptors.remove(md)?;
        if let Some(eq) = md.eq {
            self.queues.get_mut(eq)?.users -= 1;
        }
        self.unuse(md.ct);
        Ok(())
    }

    /// Starts a put (`PtlPut`): the card sends what is returned and then says so with [`Interface::sent`].
    ///
    /// # Errors
    /// [`Error::Stale`] for the descriptor; [`Error::ArgInvalid`] for a message beyond its memory or longer
    /// than the limit, or for an acknowledgement that has nowhere to go; [`Error::NoSpace`].
    pub fn put(&mut self, request: &PutRequest) -> Result<Outgoing, Error> {
        let operation = self.prepare(request)?;
        Ok(self.outgoing(operation))
    }

    /// A put that starts when `ct` has reached `threshold` successes (`PtlTriggeredPut`): then, or now where
    /// it has already, an [`Effect::Start`] tells the card.
    ///
    /// # Errors
    /// As [`Interface::put`], or [`Error::Stale`] for the counter.
    pub fn triggered_put(
        &mut self,
        request: &PutRequest,
        ct: CtHandle,
        threshold: u64,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.can_wait(ct)?;
        let operation = self.prepare(request)?;
        self.operations.get_mut(operation)?.state = State::Waiting;
        self.wait(Action::Start(operation), ct, threshold, effects);
        Ok(())
    }

    /// The card has read the last byte of the message, or given it up: the source memory may be used again.
    ///
    /// # Errors
    /// [`Error::Stale`] for an operation that has ended; [`Error::ArgInvalid`] for one that was not started
    /// or was sent before.
    pub fn sent(
        &mut self,
        operation: OperationHandle,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let op = self.operations.get_mut(operation)?;
        let State::Sending { answered } = op.state else {
            return Err(Error::ArgInvalid("only an operation that is being sent can be reported as sent"));
        };
        let ended = answered || op.header.ack == AckRequest::None || !outcome.is_ok();
        op.state = State::Sent;
        let (md, length) = (self.descriptors.get(op.md)?.md, op.header.length);
        let event = Event { fail: outcome, ..op.event(EventKind::Send, self.node) };
        if ended {
            self.forget(operation);
        }
        if !md.options.contains(MdOptions::EVENT_SEND_DISABLE) {
            self.post_initiator(&md, event, effects);
        }
        if md.options.contains(MdOptions::EVENT_CT_SEND) {
            self.count_initiator(&md, outcome, length, effects);
        }
        Ok(())
    }

    /// The card has given up waiting for the answer of an operation whose message was sent.
    ///
    /// # Errors
    /// [`Error::Stale`] for an operation that has ended.
    pub fn failed(
        &mut self,
        operation: OperationHandle,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let op = self.operations.get(operation)?;
        if op.state != State::Sent {
            return Err(Error::ArgInvalid("an operation that is not sent yet fails with `sent`"));
        }
        let source = op.header.target;
        let answer = Header { kind: HeaderKind::Ack, fail: outcome, source, length: 0, ..op.header };
        self.acknowledged(&answer, effects);
        Ok(())
    }

    /// An acknowledgement has arrived. False where no operation waits for it.
    pub(crate) fn acknowledged(&mut self, answer: &Header, effects: &mut Effects) -> bool {
        let operation = OperationHandle::from_bits(answer.operation);
        let Ok(op) = self.operations.get_mut(operation) else { return false };
        if op.header.ack == AckRequest::None || op.header.target != answer.source {
            return false;
        }
        match &mut op.state {
            State::Sending { answered: answered @ false } => *answered = true,
            State::Sent => {}
            State::Waiting | State::Sending { answered: true } => return false,
        }
        let ended = op.state == State::Sent;
        let event = Event {
            fail: answer.fail,
            mlength: answer.length,
            remote_offset: answer.remote_offset,
            ..op.event(EventKind::Ack, self.node)
        };
        let asked = op.header.length;
        let md = self.descriptors.get(op.md).expect("a descriptor in use is not released").md;
        if ended {
            self.forget(operation);
        }
        if answer.ack == AckRequest::None {
            return true;
        }
        if answer.ack == AckRequest::Full {
            self.post_initiator(&md, event, effects);
        }
        if md.options.contains(MdOptions::EVENT_CT_ACK) {
            let bytes = if answer.ack == AckRequest::OperationCompleted { asked } else { answer.length };
            self.count_initiator(&md, answer.fail, bytes, effects);
        }
        true
    }

    fn prepare(&mut self, request: &PutRequest) -> Result<OperationHandle, Error> {
        let PutRequest { local_offset, length, .. } = *request;
        let md = self.descriptors.get(request.md)?.md;
        if local_offset.checked_add(length).is_none_or(|end| end > md.length) {
            return Err(Error::ArgInvalid("the message must lie inside the descriptor's memory"));
        }
        if length > self.limits.message_bytes {
            return Err(Error::ArgInvalid("the message is longer than the limit `message_bytes`"));
        }
        if request.ack == AckRequest::Full && md.eq.is_none() {
            return Err(Error::ArgInvalid("a full acknowledgement needs a descriptor with an event queue"));
        }
        if request.ack == AckRequest::Counting && md.ct.is_none() {
            return Err(Error::ArgInvalid("a counting acknowledgement needs a descriptor with a counter"));
        }
        let header = Header {
            ack: request.ack,
            remote_offset: request.remote_offset,
            hdr_data: request.hdr_data,
            ..Header::put(self.node, request.target, request.pt, request.match_bits, length)
        };
        let operation = self.operations.insert(Operation {
            md: request.md,
            header,
            start: md.start + local_offset,
            user_ptr: request.user_ptr,
            state: State::Sending { answered: false },
        })?;
        self.operations.get_mut(operation)?.header.operation = operation.to_bits();
        self.descriptors.get_mut(request.md)?.users += 1;
        Ok(operation)
    }

    fn outgoing(&self, operation: OperationHandle) -> Outgoing {
        let op = self.operations.get(operation).expect("an operation is known until it ends");
        Outgoing { operation, header: op.header, start: op.start }
    }

    /// A triggered operation is due.
    pub(crate) fn start(&mut self, operation: OperationHandle, effects: &mut Effects) {
        let op = self.operations.get_mut(operation).expect("an operation is known until it ends");
        op.state = State::Sending { answered: false };
        effects.push(Effect::Start(self.outgoing(operation)));
    }

    /// An operation has ended.
    pub(crate) fn forget(&mut self, operation: OperationHandle) {
        let op = self.operations.remove(operation).expect("an operation ends once");
        self.descriptors.get_mut(op.md).expect("a descriptor in use is not released").users -= 1;
    }

    fn post_initiator(&mut self, md: &Md, event: Event, effects: &mut Effects) {
        if !(event.fail.is_ok() && md.options.contains(MdOptions::EVENT_SUCCESS_DISABLE)) {
            self.post(md.eq, event, effects);
        }
    }

    fn count_initiator(&mut self, md: &Md, outcome: FailType, bytes: u64, effects: &mut Effects) {
        let Some(ct) = md.ct else { return };
        let by = amount(outcome, md.options.contains(MdOptions::EVENT_CT_BYTES), bytes);
        self.count(ct, by, effects);
    }
}

impl Operation {
    fn event(&self, kind: EventKind, node: NodeId) -> Event {
        let Header { pt, match_bits, hdr_data, length, remote_offset, .. } = self.header;
        Event {
            pt,
            match_bits,
            hdr_data,
            rlength: length,
            mlength: length,
            remote_offset,
            start: self.start,
            ..Event::new(kind, node, self.user_ptr)
        }
    }
}

/// What one operation adds to a counter: a failure counts one, whatever is counted.
pub(crate) fn amount(outcome: FailType, in_bytes: bool, bytes: u64) -> CtEvent {
    match (outcome.is_ok(), in_bytes) {
        (false, _) => CtEvent::failure(1),
        (true, true) => CtEvent::success(bytes),
        (true, false) => CtEvent::success(1),
    }
}
