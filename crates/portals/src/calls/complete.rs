//! The end of a message at the target: events, the answer, counts and triggered operations, in that order.

use crate::{
    AckRequest, Delivery, Effect, Effects, Error, Event, EventKind, FailType, Header, Interface, List,
    MeOptions,
};

impl Interface {
    /// Reports that the card has carried out the message's [`Delivery`], or has failed with `outcome`. Adds events, the
    /// acknowledgement, counts and triggered operations to the effects, in that order. If a get, fetch-and-atomic or
    /// swap fails, the effects include the failing reply, so the card must not have sent any byte of a reply.
    ///
    /// # Errors
    /// [`Error::Stale`] or [`Error::ArgInvalid`] for a delivery that was completed before.
    pub fn complete(
        &mut self,
        delivery: &Delivery,
        outcome: FailType,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.finish(delivery, outcome, true, effects)
    }

    /// Completes a message that handlers have consumed, without an event or a count. Its initiator gets the requested
    /// acknowledgement. After [`Interface::me_hold`], the match entry stays in use after such a message.
    ///
    /// # Errors
    /// Those of [`Interface::complete`].
    pub fn complete_silently(&mut self, delivery: &Delivery, effects: &mut Effects) -> Result<(), Error> {
        self.finish(delivery, FailType::Ok, false, effects)
    }

    pub(crate) fn finish(
        &mut self,
        delivery: &Delivery,
        outcome: FailType,
        audible: bool,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let Delivery { header, remote_offset, .. } = delivery;
        let entry = self.entries.get_mut(delivery.me)?;
        let pt = entry.pt;
        let portal = self.table.get_mut(pt).expect("a portal table entry in use is not freed");
        let deposited = delivery.unexpected.is_some_and(|id| !portal.awaits(id));
        if entry.pending == 0 || deposited {
            return Err(Error::ArgInvalid("this message is complete already"));
        }
        entry.pending -= 1;
        portal.active -= 1;
        let me = entry.me;
        let mlength = if outcome.is_ok() { delivery.mlength } else { 0 };
        if !me.options.contains(MeOptions::EVENT_COMM_DISABLE) {
            let told = audible && !(outcome.is_ok() && me.options.contains(MeOptions::EVENT_SUCCESS_DISABLE));
            let event = Event {
                fail: outcome,
                pt,
                list: delivery.list,
                match_bits: header.match_bits,
                uid: header.uid,
                atomic: header.atomic,
                hdr_data: header.hdr_data,
                rlength: header.length,
                mlength,
                remote_offset: *remote_offset,
                start: delivery.start,
                ..Event::new(EventKind::of(header.kind, List::Priority), header.source, me.user_ptr)
            };
            self.post_expected(pt, told.then_some(event), effects);
        }
        self.settle(delivery.me, effects);
        let ack = if me.options.contains(MeOptions::ACK_DISABLE) { AckRequest::None } else { header.ack };
        if !delivery.replied {
            self.answer(header, ack, outcome, (mlength, *remote_offset, delivery.list), effects);
        }
        if audible {
            self.count_entry(&me, MeOptions::EVENT_CT_COMM, outcome, mlength, effects);
        }
        if let Some(id) = delivery.unexpected {
            self.deposited_unexpected(pt, id, delivery.mlength, outcome, effects);
        }
        if let Some(overflow) = delivery.late {
            self.forget_unexpected(overflow, effects);
        }
        self.notify(pt, effects);
        Ok(())
    }

    /// Adds the answer to a request to the effects. This is the acknowledgement `ack` of a put or atomic, or the reply
    /// to a failed get, fetch-and-atomic or swap. For an entry with `ACK_DISABLE`, `ack` is `None`. Such an
    /// acknowledgement only ends the operation, so that the initiator does not wait for ever. The answer has the number
    /// of bytes kept, the offset used and the list of the entry.
    pub(crate) fn answer(
        &mut self,
        header: &Header,
        ack: AckRequest,
        fail: FailType,
        (mlength, offset, list): (u64, u64, List),
        effects: &mut Effects,
    ) {
        if header.kind.wants_reply() {
            if !fail.is_ok() {
                effects.push(Effect::Ack(header.reply(fail, 0, offset)));
            }
        } else if header.ack != AckRequest::None {
            effects.push(Effect::Ack(Header { list, ..header.acknowledgement(ack, fail, mlength, offset) }));
        }
    }
}
