//! Starts operations of the initiator, now or when a counter triggers them ('Data Movement Operations').

use crate::request::Draft;
use crate::state::counter::Action;
use crate::state::operation::{Owner, Place};
use crate::{
    AckRequest, CtHandle, Effects, Error, Features, Header, HeaderKind, Interface, MdHandle, Operand,
    OperationHandle, Outgoing, Request,
};

impl Interface {
    /// Starts a get for the card itself, such as a handler's get, into memory at the host address `start`. The caller
    /// has checked this memory. The get posts no event. When it ends, successfully or not, `ct` (if given) counts one.
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
        Ok(self.operations.begin(operation))
    }

    /// Starts an operation. The card sends the returned message and then calls [`Interface::sent`]. A get posts no SEND
    /// event, and ends with REPLY. A fetch-and-atomic or a swap posts SEND for the memory descriptor of its data, and
    /// REPLY for the descriptor of the fetched bytes. Both may be the same descriptor.
    ///
    /// # Errors
    /// [`Error::Stale`] for a descriptor; [`Error::NoSpace`]; [`Error::ArgInvalid`] for
    ///
    /// - a message that exceeds its descriptor's memory or the limit, and an acknowledgement without an event queue or
    ///   counter;
    /// - a get or an atomic that the card lacks;
    /// - a length that is not a multiple of the item size, or exceeds [`crate::Limits::atomic_bytes`] or
    ///   [`crate::Limits::fetch_atomic_bytes`];
    /// - an operator that this kind of operation does not allow;
    /// - a swap with an operand that is missing, superfluous or not one item, and several items of data if the operator
    ///   has an operand;
    /// - a fetch-and-atomic or a swap that asks for an acknowledgement.
    pub fn start(&mut self, request: &Request) -> Result<Outgoing, Error> {
        let operation = self.prepare(&Draft::from(request))?;
        Ok(self.operations.begin(operation))
    }

    /// Checks the arguments of an operation without starting it.
    ///
    /// # Errors
    /// Those of [`Interface::start`], except for [`Error::NoSpace`].
    pub fn check_request(&self, request: &Request) -> Result<(), Error> {
        self.check_draft(&Draft::from(request))
    }

    /// Prepares an operation that starts when the successes plus failures of `ct` reach `threshold`, or now if they
    /// already have. An [`Effect::Start`](crate::Effect::Start) then passes the operation to the card. The operand of a
    /// swap is read now.
    ///
    /// # Errors
    /// Those of [`Interface::start`], and [`Error::Stale`] for the counter.
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
}
