//! Ends of the initiator's operations: SEND, ACK and REPLY ('Data Movement Operations').

use crate::diagnosis::FailedOperation;
use crate::state::operation::{Answer, Operation, State};
use crate::{
    AckRequest, CtEvent, Effects, Error, Event, EventKind, FailType, Header, HeaderKind, Interface, Md,
    MdOptions, OperationHandle, Reply,
};
use nicety_types::NodeId;

impl Interface {
    /// Reports that the card has read the last byte of the message, or has given up, as `outcome` says. In both cases,
    /// the source memory may be reused. If the card gave up, the reply to a get, fetch-and-atomic or swap has failed,
    /// too.
    ///
    /// # Errors
    /// [`Error::Stale`] for an operation that has ended; [`Error::ArgInvalid`] for one that was not started or was sent before.
    pub fn sent(
        &mut self,
        operation: OperationHandle,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let op = self.operations.get_mut(operation)?;
        let State::Started { sent: sent @ false, answer } = &mut op.state else {
            return Err(Error::ArgInvalid("only an operation that is being sent can be reported as sent"));
        };
        *sent = true;
        // If a reply is already arriving, the operation ends with this reply.
        let ended = *answer == Answer::Done || *answer == Answer::Awaited && !outcome.is_ok();
        let unanswered = (ended && *answer == Answer::Awaited).then_some(op.to).flatten();
        let (from, header) = (op.from, op.header);
        let event = |kind, start| Event { fail: outcome, ..op.event(kind, start, self.node) };
        let send = from.map(|from| (from, event(EventKind::Send, from.start)));
        let reply = unanswered.map(|to| (to, Event { mlength: 0, ..event(EventKind::Reply, to.start) }));
        let send = send.map(|(from, event)| (self.md(from), event));
        let reply = reply.map(|(to, event)| (self.md(to), event));
        if ended {
            self.forget(operation);
        } else {
            self.unanswered += 1;
        }
        if let Some((md, event)) = send {
            if !md.options.contains(MdOptions::EVENT_SEND_DISABLE) {
                self.post_initiator(&md, event, effects);
            }
            self.count_initiator(&md, MdOptions::EVENT_CT_SEND, (&header, outcome), header.length, effects);
        }
        if let Some((md, event)) = reply {
            self.post_initiator(&md, event, effects);
            self.count_initiator(&md, MdOptions::EVENT_CT_REPLY, (&header, outcome), 0, effects);
        }
        Ok(())
    }

    /// Reports that the card no longer waits for the answer to a sent operation. The operation ends with `outcome`.
    ///
    /// # Errors
    /// [`Error::Stale`] for an operation that has ended; [`Error::ArgInvalid`] for one that is not sent, or has a reply
    /// that is arriving.
    pub fn failed(
        &mut self,
        operation: OperationHandle,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let op = self.operations.get(operation)?;
        match op.state {
            State::Started { sent: true, answer: Answer::Awaited } => {}
            State::Started { answer: Answer::Arriving, .. } => {
                return Err(Error::ArgInvalid(
                    "an operation with an arriving reply fails with `complete_reply`",
                ));
            }
            _ => return Err(Error::ArgInvalid("an operation that is not sent yet fails with `sent`")),
        }
        let reply = op.to.is_some();
        let kind = if reply { HeaderKind::Reply } else { HeaderKind::Ack };
        let answer = Header { kind, fail: outcome, source: op.header.target, length: 0, ..op.header };
        if !reply {
            self.acknowledged(&answer, effects);
            return Ok(());
        }
        let reply = self.replied(&answer).expect("it is awaited");
        self.complete_reply(&reply, outcome, effects)
    }

    /// Returns each sent operation without a complete answer, its target, and whether part of the answer has arrived.
    /// An operation with such a part ends with [`Interface::complete_reply`].
    pub fn unanswered(&self) -> impl Iterator<Item = (OperationHandle, NodeId, bool)> + '_ {
        self.operations.values().filter_map(|op| match op.state {
            State::Started { sent: true, answer: answer @ (Answer::Awaited | Answer::Arriving) } => {
                let operation = OperationHandle::from_bits(op.header.operation);
                Some((operation, op.header.target, answer == Answer::Arriving))
            }
            _ => None,
        })
    }

    /// Reports the end of a reply. `outcome` says whether the card has deposited every byte. Adds the REPLY event, the
    /// count and triggered operations to the effects.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::ArgInvalid`] for a reply that was completed before.
    pub fn complete_reply(
        &mut self,
        reply: &Reply,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let op = self.operations.get_mut(reply.operation)?;
        let (State::Started { sent, answer: answer @ Answer::Arriving }, Some(to)) = (&mut op.state, op.to)
        else {
            return Err(Error::ArgInvalid("no reply to this operation is arriving"));
        };
        *answer = Answer::Done;
        let (ended, header) = (*sent, op.header);
        let fail = if reply.fail.is_ok() { outcome } else { reply.fail };
        let mlength = if fail.is_ok() { reply.mlength } else { 0 };
        let event = Event {
            fail,
            mlength,
            remote_offset: reply.remote_offset,
            ..op.event(EventKind::Reply, to.start, self.node)
        };
        let md = self.md(to);
        if ended {
            self.unanswered -= 1;
            self.forget(reply.operation);
        }
        self.post_initiator(&md, event, effects);
        self.count_initiator(&md, MdOptions::EVENT_CT_REPLY, (&header, fail), mlength, effects);
        Ok(())
    }

    /// Handles an acknowledgement. Returns false if no operation waits for it.
    pub(crate) fn acknowledged(&mut self, answer: &Header, effects: &mut Effects) -> bool {
        let node = self.node;
        let Some((op, ended)) = self.answered(answer, Answer::Done) else { return false };
        let Some(from) = op.from else { return false };
        let event = Event {
            fail: answer.fail,
            mlength: answer.length,
            remote_offset: answer.remote_offset,
            list: answer.list,
            ..op.event(EventKind::Ack, from.start, node)
        };
        let header = op.header;
        let md = self.md(from);
        if ended {
            self.unanswered -= 1;
            self.forget(OperationHandle::from_bits(answer.operation));
        }
        if answer.ack == AckRequest::None {
            return true;
        }
        if answer.ack == AckRequest::Full {
            self.post_initiator(&md, event, effects);
        }
        let bytes = if answer.ack == AckRequest::OperationCompleted { header.length } else { answer.length };
        self.count_initiator(&md, MdOptions::EVENT_CT_ACK, (&header, answer.fail), bytes, effects);
        true
    }

    /// Handles the header of a reply. Returns `None` if no operation waits for it.
    pub(crate) fn replied(&mut self, answer: &Header) -> Option<Reply> {
        let operation = OperationHandle::from_bits(answer.operation);
        let asked = self.operations.get(operation).ok()?.header.length;
        if answer.length > asked {
            return None;
        }
        let (op, _) = self.answered(answer, Answer::Arriving)?;
        let to = op.to?;
        Some(Reply {
            operation,
            of_card: to.of_card(),
            start: to.start,
            mlength: if answer.fail.is_ok() { answer.length } else { 0 },
            rlength: asked,
            remote_offset: answer.remote_offset,
            fail: answer.fail,
        })
    }

    /// Records that an answer has arrived, if the operation waits for an answer of this kind from this node. Returns
    /// the operation, and whether its message has been sent.
    fn answered(&mut self, header: &Header, new: Answer) -> Option<(&Operation, bool)> {
        let op = self.operations.get_mut(OperationHandle::from_bits(header.operation)).ok()?;
        if op.header.target != header.source || op.to.is_some() != (header.kind == HeaderKind::Reply) {
            return None;
        }
        let State::Started { sent, answer: answer @ Answer::Awaited } = &mut op.state else { return None };
        *answer = new;
        let sent = *sent;
        Some((op, sent))
    }

    fn post_initiator(&mut self, md: &Md, event: Event, effects: &mut Effects) {
        if !(event.fail.is_ok() && md.options.contains(MdOptions::EVENT_SUCCESS_DISABLE)) {
            self.post(md.eq, event, effects);
        }
    }

    fn count_initiator(
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
