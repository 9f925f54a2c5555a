//! Receives of a process, probes for messages, and cancellation of receives.

use super::{ArrivedMessage, Course, Posted, Probing, Program, StandIn};
use crate::memory;
use crate::pages::rank_or_any;
use crate::places::{DATA_BYTES, HAS_DATA, UNTAGGED, tags};
use crate::protocol::{ANY, Completion, Kind, Receive, done, flag};
use crate::spent::Part;
use nicety::{Duration, Error, Host, PendingRecv, Received, Tags, Time};
use std::cell::Cell;
use std::rc::Rc;

/// The error number FI_ETRUNC of libfabric.
const TRUNCATED: i32 = 265;
impl Program {
    /// Returns the host and the card's tags of the messages that a receive takes.
    fn wanted(&self, receive: &Receive) -> (Option<u32>, Tags) {
        let from = rank_or_any(receive.from);
        let tags = match receive.flags & flag::UNTAGGED {
            0 => Tags {
                bits: self.places.own(receive.tag),
                ignore: self.places.own(receive.ignore) | HAS_DATA,
            },
            _ => Tags { bits: UNTAGGED, ignore: HAS_DATA },
        };
        (from.map(|rank| self.places.host(rank)), self.places.wanted(from, self.rank, tags))
    }

    /// Returns the message with its sender's rank, in place of the host, as its source.
    const fn of_rank(&self, received: Received) -> Received {
        Received { source: self.places.source(received.source, received.tag), ..received }
    }

    /// Posts a receive on the host, into the memory `stand_in`.
    pub(super) async fn post(
        &self,
        host: &Host,
        receive: &Receive,
        own: &StandIn,
    ) -> Result<PendingRecv, Error> {
        let (from, tags) = self.wanted(receive);
        host.post_recv_matching(&own.part, from, tags).await
    }

    /// Copies an arrived message into the process, and returns the completion of its receive.
    pub(super) fn bring(
        &self,
        ArrivedMessage { received, with }: ArrivedMessage,
        own: &StandIn,
        receive: &Receive,
        (address, room): (u64, u64),
    ) -> Result<Completion, Error> {
        let head = with.map_or(0, |with| with.head);
        let sent = received.length - head.min(received.length);
        let bytes = sent.min(room).min(own.part.len().saturating_sub(head));
        // If several messages share the memory, the next message may have overwritten the header data of this one.
        let data = match with {
            Some(with) if head == 0 || self.stand_ins.has_pages(own.part.len()) => with.data,
            Some(_) => u32::from_le_bytes(own.part.read(0, DATA_BYTES).try_into().expect("four bytes")),
            None => 0,
        };
        if bytes > 0 {
            memory::write(self.process()?, address, &own.part.read(head, bytes))
                .map_err(|error| self.unreachable(", to be received into,", (address, bytes), &error))?;
        }
        self.counts.borrow_mut().receives += 1;
        self.ended.count(Kind::Recv, sent <= bytes);
        let flags = done::RECV
            | if with.is_some() { done::DATA } else { 0 }
            | if receive.flags & flag::UNTAGGED != 0 { done::UNTAGGED } else { 0 };
        Ok(Completion {
            context: receive.context,
            flags,
            error: if sent > bytes { TRUNCATED } else { 0 },
            bytes,
            address,
            data: data.into(),
            tag: self.places.own(received.tag),
            source: received.source.into(),
            cut: sent - bytes,
        })
    }

    pub(super) async fn post_receive(self: &Rc<Self>, receive: Receive) -> Result<i64, Error> {
        match self.untagged.has(&receive) {
            false if self.window.is_full() || !self.queued.borrow().is_empty() => {
                self.queued.borrow_mut().push_back(receive);
                Ok(0)
            }
            false => self.receive(receive).await,
            true => self.receive_untagged(receive).await,
        }
    }

    async fn receive(self: &Rc<Self>, receive: Receive) -> Result<i64, Error> {
        self.window.receives();
        let stand_in = self.stand_ins.of_receive(receive.address, receive.bytes + DATA_BYTES)?;
        let pending = self.post(&self.host, &receive, &stand_in).await?;
        let number = self.numbers.replace(self.numbers.get() + 1);
        let memory = Rc::new(Cell::new(Some(stand_in)));
        let posted = Posted { receive, pending: pending.clone(), memory: memory.clone() };
        self.posted.borrow_mut().insert(number, posted);
        let op = self.ended.logged(|log| log.posts(self.rank));
        let own = self.clone();
        self.start(|host| async move {
            let came = own.arrived(&host, pending, op).await?;
            own.posted.borrow_mut().remove(&number);
            own.window.received();
            own.post_queued().await?;
            let place = (receive.address, receive.bytes);
            let Some(stand_in) = memory.take() else { return Ok(()) };
            let completion = own.bring(came, &stand_in, &receive, place)?;
            own.stand_ins.give_back(stand_in);
            if receive.flags & flag::COMPLETION != 0 || completion.error != 0 {
                own.ended.complete(completion, op);
            }
            Ok(())
        });
        Ok(0)
    }

    /// Posts receives that waited for match entries of the card.
    async fn post_queued(self: &Rc<Self>) -> Result<(), Error> {
        while !self.window.is_full() {
            let Some(receive) = self.queued.borrow_mut().pop_front() else { break };
            // Boxed, because the task would otherwise contain itself.
            Box::pin(self.receive(receive)).await?;
        }
        Ok(())
    }

    /// Waits for the message of a receive. `op` is the receive's operation in the log.
    pub(super) async fn arrived(
        self: &Rc<Self>,
        host: &Host,
        pending: PendingRecv,
        op: Option<u32>,
    ) -> Result<ArrivedMessage, Error> {
        let received = self.of_rank(host.arrived(pending).await?);
        self.has_received(received.source);
        if let Some(op) = op {
            self.ended
                .logged(|log| log.got((self.rank, op), (received.source, received.tag), received.length));
        }
        let path = (received.source, self.rank, received.tag);
        let has_data = received.tag & HAS_DATA != 0;
        let with = has_data.then(|| self.turns.received(path, received.length)).flatten();
        Ok(ArrivedMessage { received, with })
    }

    /// Probes for an unexpected message. A message that is found stays, is claimed for a later receive, or is discarded.
    pub(super) async fn peek(self: &Rc<Self>, peek: Receive, course: &mut Course) -> Result<i64, Error> {
        let (from, tags) = self.wanted(&peek);
        if peek.flags & flag::REPEATS != 0 {
            self.skip_probes(course).await;
        }
        let since = (self.rank, *course.peeks_since.get_or_insert_with(|| self.host.now()));
        let seen = self.host.early_changes();
        let found = self.host.probe(from, tags).await?;
        self.peeks.replace(found.is_none().then_some(peek));
        if found.is_none() {
            self.turns.lap(self.rank, Part::Calls);
            let comes = self.host.early_beyond(seen);
            self.turns.looked_in_vain(since, 1, || self.looking_for(&peek), comes).await;
            self.turns.lap(self.rank, Part::Waits);
        } else {
            course.peeks_since = None;
        }
        let Some(found) = found.map(|found| self.of_rank(found)) else {
            let none = Completion {
                context: peek.context,
                flags: done::RECV,
                error: libc::ENOMSG,
                tag: peek.tag,
                source: ANY,
                ..Completion::default()
            };
            self.ended.found_none(none);
            return Ok(0);
        };
        let path = (found.source, self.rank, found.tag);
        let has_data = found.tag & HAS_DATA != 0;
        let with = has_data.then(|| self.turns.first_with(path, found.length)).flatten();
        let head = with.map_or(0, |with| with.head);
        let mut completion = Completion {
            context: peek.context,
            flags: done::RECV,
            bytes: found.length - head.min(found.length),
            tag: self.places.own(found.tag),
            source: found.source.into(),
            ..Completion::default()
        };
        if let Some(with) = with {
            completion.data = with.data.into();
            completion.flags |= done::DATA;
        }
        let mut op = None;
        if peek.flags & (flag::CLAIM | flag::DISCARD) != 0 {
            // This message is the first one of its source and tag, so this receive takes it.
            let exactly = Receive { from: found.source.into(), tag: completion.tag, ignore: 0, ..peek };
            let stand_in = self.stand_ins.any(completion.bytes + DATA_BYTES)?;
            let pending = self.post(&self.host, &exactly, &stand_in).await?;
            op = self.ended.logged(|log| log.posts(self.rank));
            let came = self.arrived(&self.host, pending, op).await?;
            if peek.flags & flag::DISCARD != 0 {
                self.stand_ins.give_back(stand_in);
            } else {
                self.claimed.borrow_mut().insert(peek.context, (came, stand_in));
            }
        }
        self.ended.complete(completion, op);
        Ok(0)
    }

    /// Skips probes that end before the next event, since they find nothing. This requires that the last two probes took the same
    /// time and that no event occurred between them. All skipped probes but the last are charged at once.
    async fn skip_probes(&self, course: &mut Course) {
        let (now, quiet_until) = (self.host.now(), self.host.quiet_until());
        let calls = self.counts.borrow().calls;
        let last = course.probing.take();
        let mut next = Probing { begun: now, quiet_until, period: Duration::ZERO, calls };
        if let Some(last) = last.filter(|last| last.quiet_until >= now) {
            next.period = now.since(last.begun);
            let is_steady = next.period == last.period && !next.period.is_zero();
            if is_steady && quiet_until > now && quiet_until < Time::MAX {
                let skipped = (quiet_until.since(now).ps() / next.period.ps()).saturating_sub(1);
                if skipped > 0 {
                    self.host.pause(next.period * skipped).await;
                    self.turns.lap(self.rank, Part::Waits);
                }
                next.calls += skipped * (calls - last.calls);
                self.counts.borrow_mut().calls = next.calls;
                (next.begun, next.quiet_until) = (self.host.now(), self.host.quiet_until());
            }
        }
        course.probing = Some(next);
    }

    /// Copies a claimed message into the process, or discards it.
    pub(super) fn take_claimed(&self, receive: Receive) -> Result<i64, Error> {
        let Some((came, stand_in)) = self.claimed.borrow_mut().remove(&receive.context) else {
            return Ok(-i64::from(libc::EINVAL));
        };
        let is_wanted = receive.flags & flag::DISCARD == 0;
        let room = if is_wanted { receive.bytes } else { 0 };
        let mut completion = self.bring(came, &stand_in, &receive, (receive.address, room))?;
        if !is_wanted {
            (completion.error, completion.cut) = (0, 0);
        }
        self.stand_ins.give_back(stand_in);
        self.ended.complete(completion, None);
        Ok(0)
    }

    /// Cancels a receive, if it has no message. An arrived message is received.
    pub(super) async fn cancel(self: &Rc<Self>, context: u64) -> Result<i64, Error> {
        let find = |(number, own): (&u64, &Posted)| {
            (own.receive.context == context).then(|| (*number, own.pending.clone()))
        };
        let found = self.posted.borrow().iter().find_map(find);
        let queued = self.queued.borrow().iter().position(|receive| receive.context == context);
        let queued = queued.and_then(|at| self.queued.borrow_mut().remove(at));
        let receive = match (queued, found) {
            (Some(receive), _) => receive,
            (None, None) => {
                self.cancel_untagged(context);
                return Ok(0);
            }
            (None, Some((number, pending))) => {
                if self.host.cancel(pending).await?.is_some() {
                    return Ok(0);
                }
                let Some(Posted { receive, memory, .. }) = self.posted.borrow_mut().remove(&number) else {
                    return Ok(0);
                };
                memory.take().into_iter().for_each(|own| self.stand_ins.give_back(own));
                self.window.received();
                self.post_queued().await?;
                receive
            }
        };
        let given_up = Completion {
            context,
            flags: done::RECV,
            error: libc::ECANCELED,
            tag: receive.tag,
            source: ANY,
            ..Completion::default()
        };
        self.ended.complete(given_up, None);
        Ok(0)
    }
}

/// Describes the sender and the tags of the messages that a receive takes.
pub(super) fn whose(receive: &Receive) -> String {
    let from = rank_or_any(receive.from).map_or("any rank".to_owned(), |rank| format!("rank {rank}"));
    match receive.flags & flag::UNTAGGED {
        0 => format!("{from}, {}", tags(receive.tag, receive.ignore)),
        _ => from,
    }
}
