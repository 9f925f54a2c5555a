//! The initiator: memory descriptors, operations, and their ends ('Memory Descriptors', 'Data Movement Operations').
//!
//! An operation ends when its message has been sent and the requested answer has arrived: an acknowledgement, or a reply with its bytes
//! deposited. Until then it counts among [`crate::Limits::operations`], and keeps its memory descriptors in use.

use crate::counter::Action;
use crate::diagnosis::FailedOperation;
use crate::interface::release;
use crate::request::Draft;
use crate::{
    AckRequest, CtEvent, CtHandle, Effect, Effects, EqHandle, Error, Event, EventKind, FailType, Features,
    Header, HeaderKind, Interface, MdHandle, MdOptions, Operand, OperationHandle, Outgoing, Request,
};
use nicety_types::NodeId;

/// A memory descriptor: source memory of messages and destination of replies (`ptl_md_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Md {
    /// Host address of the first byte.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Options.
    pub options: MdOptions,
    /// The event queue, if any.
    pub eq: Option<EqHandle>,
    /// The counter, if any.
    pub ct: Option<CtHandle>,
}

pub(crate) struct Descriptor {
    pub md: Md,
    /// Operations that use it and have not ended.
    users: u32,
}

pub(crate) struct Operation {
    pub header: Header,
    pub from: Option<Place>,
    pub to: Option<Place>,
    operand: Operand,
    user_ptr: u64,
    pub state: State,
}

/// Memory that an operation reads or fills.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    of: Owner,
    /// Host address.
    pub start: u64,
}

#[derive(Clone, Copy)]
enum Owner {
    /// A descriptor of the host.
    Host(MdHandle),
    /// The card itself, with the counter for the end of the operation.
    Card(Option<CtHandle>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Triggered, and not yet due.
    Waiting,
    /// Handed to the card, or sent.
    Started { sent: bool, answer: Answer },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Not requested, or arrived.
    Done,
    Awaited,
    /// The bytes of the reply are in flight.
    Arriving,
}

impl Interface {
    /// Binds memory to send from or to get into (`PtlMDBind`).
    ///
    /// # Errors
    /// [`Error::NoSpace`]; [`Error::Stale`] for the queue or counter; [`Error::ArgInvalid`] if the memory ends beyond 2^64, or options
    /// count without a counter.
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
    /// [`Error::Stale`], or [`Error::InUse`] while an operation uses it.
    pub fn md_release(&mut self, md: MdHandle) -> Result<(), Error> {
        release(self.descriptors.get(md)?.users, "memory descriptor", "operations that have not ended")?;
        let Descriptor { md, .. } = self.descriptors.remove(md)?;
        if let Some(eq) = md.eq {
            self.queues.get_mut(eq)?.users -= 1;
        }
        self.unuse(md.ct);
        Ok(())
    }

    /// Starts a get of the card's own, such as a handler's, into checked memory at the host address `start`. It leaves no event. At its
    /// end, successful or not, `ct` counts one, if given.
    ///
    /// # Errors
    /// [`Error::Stale`] for the counter; [`Error::ArgInvalid`] if the card lacks gets, or for a message longer than the limit;
    /// [`Error::NoSpace`].
    pub fn card_get(&mut self, start: u64, header: &Header, ct: Option<CtHandle>) -> Result<Outgoing, Error> {
        let header = Header { kind: HeaderKind::Get, ack: AckRequest::None, atomic: None, ..*header };
        let draft = Draft { header, from: None, to: None, operand: Operand::NONE, user_ptr: 0 };
        self.check_draft(&draft)?;
        ct.map(|ct| self.counters.get(ct)).transpose()?;
        let to = Some(Place { of: Owner::Card(ct), start });
        let operation = self.remember_operation(&draft, None, to)?;
        Ok(self.begin(operation))
    }

    /// Starts an operation: the card sends the returned message and then calls [`Interface::sent`]. A get has no SEND event, and ends
    /// with REPLY. For a fetch-and-atomic or a swap, SEND goes to the data's descriptor, and REPLY to that of the fetched bytes.
    /// Both may be the same.
    ///
    /// # Errors
    /// [`Error::Stale`] for a descriptor; [`Error::NoSpace`]; [`Error::ArgInvalid`] for
    ///
    /// - a message beyond its memory or the limit, and an acknowledgement without an event queue or counter;
    /// - a get or an atomic that the card lacks;
    /// - a length that is not whole items or exceeds [`crate::Limits::atomic_bytes`] or [`crate::Limits::fetch_atomic_bytes`];
    /// - an operator of another operation;
    /// - a swap with an operand that is missing, superfluous or not one item, and several items if the operator takes one;
    /// - a fetch-and-atomic or a swap that asks for an acknowledgement.
    pub fn start(&mut self, request: &Request) -> Result<Outgoing, Error> {
        let operation = self.prepare(&Draft::from(request))?;
        Ok(self.begin(operation))
    }

    /// Checks the arguments of an operation, as when it starts.
    ///
    /// # Errors
    /// As [`Interface::start`], except for a lack of room.
    pub fn check_request(&self, request: &Request) -> Result<(), Error> {
        self.check_draft(&Draft::from(request))
    }

    /// Prepares an operation that starts when `ct` has counted `threshold` successes and failures, or now if it already has. An
    /// [`Effect::Start`] hands it to the card. The operand of a swap is read now.
    ///
    /// # Errors
    /// As [`Interface::start`], or [`Error::Stale`] for the counter.
    pub fn trigger(
        &mut self,
        request: &Request,
        ct: CtHandle,
        threshold: u64,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.can_wait(ct)?;
        let operation = self.prepare(&Draft::from(request))?;
        self.wait(Action::Start(operation), ct, threshold, effects);
        Ok(())
    }

    /// Creates an operation that has not started.
    fn prepare(&mut self, draft: &Draft) -> Result<OperationHandle, Error> {
        self.check_draft(draft)?;
        let place = |at: Option<(MdHandle, u64)>| {
            at.map(|(md, offset)| {
                let start = self.descriptors.get(md)?.md.start;
                Ok(Place { of: Owner::Host(md), start: start + offset })
            })
            .transpose()
        };
        self.remember_operation(draft, place(draft.from)?, place(draft.to)?)
    }

    fn remember_operation(
        &mut self,
        draft: &Draft,
        from: Option<Place>,
        to: Option<Place>,
    ) -> Result<OperationHandle, Error> {
        let header = Header { source: self.node, uid: self.uid, ..draft.header };
        let (operand, user_ptr, state) = (draft.operand, draft.user_ptr, State::Waiting);
        let operation = self.operations.insert(Operation { header, from, to, operand, user_ptr, state })?;
        self.operations.get_mut(operation)?.header.operation = operation.to_bits();
        for place in [from, to].into_iter().flatten() {
            match place.of {
                Owner::Host(md) => self.descriptors.get_mut(md)?.users += 1,
                Owner::Card(ct) => self.r#use(ct),
            }
        }
        Ok(operation)
    }

    fn check_draft(&self, draft: &Draft) -> Result<(), Error> {
        let Header { kind, length, ack, atomic, .. } = draft.header;
        for (md, offset) in [draft.from, draft.to].into_iter().flatten() {
            let md = self.descriptors.get(md)?.md;
            if offset.checked_add(length).is_none_or(|end| end > md.length) {
                return Err(Error::ArgInvalid("the message must lie inside the descriptor's memory"));
            }
        }
        if length > self.limits.message_bytes {
            return Err(Error::ArgInvalid("the message is longer than the limit `message_bytes`"));
        }
        if kind == HeaderKind::Get && !self.limits.features.contains(Features::GET) {
            return Err(Error::ArgInvalid("this card does no gets: its limits lack the feature `GET`"));
        }
        if let Some((md, _)) = draft.from {
            let md = self.descriptors.get(md)?.md;
            if ack == AckRequest::Full && md.eq.is_none() {
                return Err(Error::ArgInvalid(
                    "a full acknowledgement needs a descriptor with an event queue",
                ));
            }
            if ack == AckRequest::Counting && md.ct.is_none() {
                return Err(Error::ArgInvalid(
                    "a counting acknowledgement needs a descriptor with a counter",
                ));
            }
        }
        if draft.to.is_some() && ack != AckRequest::None {
            return Err(Error::ArgInvalid(
                "an operation with a reply has no acknowledgement: `ack` must be `None`",
            ));
        }
        let Some(atomic) = atomic else { return Ok(()) };
        if !self.limits.features.contains(Features::ATOMIC) {
            return Err(Error::ArgInvalid("this card does no atomics: its limits lack the feature `ATOMIC`"));
        }
        match kind {
            HeaderKind::Atomic if length > self.limits.atomic_bytes => {
                return Err(Error::ArgInvalid("the atomic is longer than the limit `atomic_bytes`"));
            }
            HeaderKind::FetchAtomic | HeaderKind::Swap if length > self.limits.fetch_atomic_bytes => {
                return Err(Error::ArgInvalid("the operation is longer than the limit `fetch_atomic_bytes`"));
            }
            _ => {}
        }
        if atomic.op().is_swap() != (kind == HeaderKind::Swap) {
            return Err(Error::ArgInvalid(
                "swapping operators are for `swap`, and all others for the atomics",
            ));
        }
        if !atomic.takes_length(length) {
            return Err(Error::ArgInvalid(crate::atomic::LENGTH));
        }
        if draft.operand.as_slice().len() != atomic.operand_bytes() {
            return Err(Error::ArgInvalid(crate::atomic::OPERAND));
        }
        Ok(())
    }

    fn begin(&mut self, operation: OperationHandle) -> Outgoing {
        let op = self.operations.get_mut(operation).expect("an operation is known until it ends");
        let answered = op.to.is_some() || op.header.ack != AckRequest::None;
        let answer = if answered { Answer::Awaited } else { Answer::Done };
        op.state = State::Started { sent: false, answer };
        let start = op.from.or(op.to).map_or(0, |place| place.start);
        Outgoing { operation, header: op.header, start, operand: op.operand }
    }

    /// Starts a triggered operation that is due.
    pub(crate) fn start_due(&mut self, operation: OperationHandle, effects: &mut Effects) {
        let outgoing = self.begin(operation);
        effects.push(Effect::Start(outgoing));
    }

    /// Removes an operation that has ended.
    pub(crate) fn forget(&mut self, operation: OperationHandle) {
        let op = self.operations.remove(operation).expect("an operation ends once");
        for place in [op.from, op.to].into_iter().flatten() {
            match place.of {
                Owner::Host(md) => {
                    self.descriptors.get_mut(md).expect("a descriptor in use is not released").users -= 1;
                }
                Owner::Card(ct) => self.unuse(ct),
            }
        }
    }

    /// Returns whether the place belongs to the card.
    pub(crate) const fn of_card(place: Place) -> bool {
        matches!(place.of, Owner::Card(_))
    }

    /// Returns the descriptor of a place, or a substitute if the place belongs to the card.
    pub(crate) fn md(&self, place: Place) -> Md {
        match place.of {
            Owner::Host(md) => self.descriptors.get(md).expect("a descriptor in use is not released").md,
            Owner::Card(ct) => Md { ct, options: MdOptions::EVENT_CT_REPLY, ..Md::default() },
        }
    }

    pub(crate) fn post_initiator(&mut self, md: &Md, event: Event, effects: &mut Effects) {
        if !(event.fail.is_ok() && md.options.contains(MdOptions::EVENT_SUCCESS_DISABLE)) {
            self.post(md.eq, event, effects);
        }
    }

    pub(crate) fn count_initiator(
        &mut self,
        md: &Md,
        option: MdOptions,
        (header, outcome): (&Header, FailType),
        bytes: u64,
        effects: &mut Effects,
    ) {
        if let (Some(ct), true) = (md.ct, md.options.contains(option)) {
            let by = CtEvent::of(outcome, md.options.contains(MdOptions::EVENT_CT_BYTES), bytes);
            if let (false, Ok(counter)) = (outcome.is_ok(), self.counters.get_mut(ct)) {
                counter.first_failure.get_or_insert(FailedOperation::new(header, outcome));
            }
            self.count(ct, by, effects);
        }
    }
}

impl Operation {
    pub fn event(&self, kind: EventKind, start: u64, node: NodeId) -> Event {
        let Header { pt, match_bits, hdr_data, length, remote_offset, uid, atomic, .. } = self.header;
        Event {
            pt,
            match_bits,
            uid,
            atomic,
            hdr_data,
            rlength: length,
            mlength: length,
            remote_offset,
            start,
            ..Event::new(kind, node, self.user_ptr)
        }
    }
}
