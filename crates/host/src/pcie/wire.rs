//! The two directions of a link: TLPs in order, DLLPs and ordered sets between them, and credits.

use super::spec::{self, CREDIT_BYTES, DLLP, PcieSpec};
use nicety_types::{Duration, Gap, MessageId, Path, Stage, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToCard,
    ToHost,
}

/// The flow-control class of a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Posted,
    NonPosted,
    Completion,
}

/// A TLP before its transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tlp {
    pub(super) class: Class,
    /// Size on the wire in bytes.
    pub(super) bytes: u64,
    /// Size of the padded payload in bytes.
    pub(super) payload: u64,
    /// Minimum time from the end of the previous TLP of the direction.
    pub(super) apart: Duration,
}

impl Tlp {
    fn data_credits(&self) -> u64 {
        self.payload.div_ceil(CREDIT_BYTES)
    }
}

/// Credits of one class at the receiver of a direction. When a TLP is sent, the return time of its credits is already
/// known. So future returns are in a list.
#[derive(Debug)]
struct FlowControl {
    limit: spec::Credits,
    used: spec::Credits,
    returns: VecDeque<(Time, spec::Credits)>,
    /// Departure time of the next UpdateFC. If it is in the past, no UpdateFC waits.
    update: Time,
}

impl FlowControl {
    fn new(limit: spec::Credits) -> FlowControl {
        FlowControl { limit, used: spec::Credits::INFINITE, returns: VecDeque::new(), update: Time::ZERO }
    }

    fn is_infinite(&self) -> bool {
        self.limit == spec::Credits::INFINITE
    }

    fn fits(&self, used: spec::Credits, data: u64) -> bool {
        (self.limit.headers == 0 || used.headers < self.limit.headers)
            && (self.limit.data == 0 || used.data + data <= self.limit.data)
    }

    /// Returns the first instant from `from` on at which a TLP that needs `data` data credits may leave, if no other
    /// TLP leaves before.
    fn earliest(&self, from: Time, data: u64) -> Time {
        let (mut used, mut at) = (self.used, from);
        for &(time, back) in &self.returns {
            if self.fits(used, data) && time > at {
                break;
            }
            used = spec::Credits { headers: used.headers - back.headers, data: used.data - back.data };
            at = at.max(time);
        }
        assert!(self.fits(used, data), "a receiver has room for one TLP at least");
        at
    }

    /// Takes the credits of a TLP that leaves at `start`.
    fn take(&mut self, start: Time, data: u64) {
        while let Some(&(time, back)) = self.returns.front()
            && time <= start
        {
            self.returns.pop_front();
            self.used.headers -= back.headers;
            self.used.data -= back.data;
        }
        debug_assert!(self.fits(self.used, data), "it waited for them");
        self.used.headers += 1;
        self.used.data += data;
    }

    /// Schedules the return of a TLP's credits at `time`. `time` is not before any return that is already scheduled.
    fn give_back(&mut self, time: Time, data: u64) {
        match self.returns.back_mut() {
            Some((last, back)) if *last == time => {
                back.headers += 1;
                back.data += data;
            }
            _ => self.returns.push_back((time, spec::Credits { headers: 1, data })),
        }
    }
}

/// One direction of a link.
#[derive(Debug)]
struct Direction {
    free: Time,
    busy: Duration,
    /// Departure time of the last TLP's last byte.
    sent: Time,
    /// The message of the last TLP, and its path until the TLP left. With these, a wait for the same message is
    /// distinguished from a wait for other messages.
    last: Option<(MessageId, Path)>,
    /// Time at which the next SKP ordered set is due.
    skip_due: Time,
    /// Times at which the waiting DLLPs of this direction are ready.
    dllps: BinaryHeap<Reverse<Time>>,
    /// Departure time of the next Ack for this direction's TLPs, in the other direction. If it is in the past, no Ack
    /// waits.
    ack: Time,
    posted: FlowControl,
    non_posted: FlowControl,
    completion: FlowControl,
}

impl Direction {
    fn new(spec: &PcieSpec) -> Direction {
        Direction {
            free: Time::ZERO,
            busy: Duration::ZERO,
            sent: Time::ZERO,
            last: None,
            skip_due: Time::ZERO + spec.skip().1,
            dllps: BinaryHeap::new(),
            ack: Time::ZERO,
            posted: FlowControl::new(spec.posted),
            non_posted: FlowControl::new(spec::Credits { headers: spec.non_posted_headers, data: 0 }),
            completion: FlowControl::new(spec.completion),
        }
    }

    fn credits(&mut self, class: Class) -> &mut FlowControl {
        match class {
            Class::Posted => &mut self.posted,
            Class::NonPosted => &mut self.non_posted,
            Class::Completion => &mut self.completion,
        }
    }

    /// Sends the SKP ordered sets that are due by `until`, the start of a TLP. The phase of ordered sets is unknown. If
    /// the wire was idle for at least the duration of a set, the model assumes that a set was sent in that time. So
    /// only streams pay for ordered sets.
    fn send_skips(&mut self, until: Time, (each, interval): (Duration, Duration)) {
        if until >= self.free + each {
            self.skip_due = until + interval;
        }
        while self.skip_due <= until {
            self.free = self.free.max(self.skip_due) + each;
            self.busy += each;
            self.skip_due += interval;
        }
    }

    /// Sends the DLLPs that are ready by `until`. Each leaves as soon as the wire is free.
    fn send_dllps(&mut self, until: Time, each: Duration) {
        while let Some(&Reverse(ready)) = self.dllps.peek()
            && ready <= until
        {
            self.dllps.pop();
            self.free = self.free.max(ready) + each;
            self.busy += each;
        }
    }
}

/// The departure times of a TLP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The time at which its first byte leaves.
    pub(super) start: Time,
    /// The time at which its last byte has left.
    pub(super) end: Time,
    /// The time at which the last byte of the previous TLP left.
    pub(super) before: Time,
}

/// Both directions of a link.
#[derive(Debug)]
pub(super) struct Wires {
    gap: Gap,
    dllp: Duration,
    skip: (Duration, Duration),
    port_latency: Duration,
    ack_delay: Duration,
    update_delay: Duration,
    to_card: Direction,
    to_host: Direction,
}

impl Wires {
    pub(super) fn new(spec: &PcieSpec) -> Wires {
        let gap = spec.gap();
        Wires {
            gap,
            dllp: gap.cover(DLLP),
            skip: spec.skip(),
            port_latency: spec.port_latency,
            ack_delay: spec.ack_delay,
            update_delay: spec.update_delay,
            to_card: Direction::new(spec),
            to_host: Direction::new(spec),
        }
    }

    fn ways(&mut self, way: Way) -> (&mut Direction, &mut Direction) {
        match way {
            Way::ToCard => (&mut self.to_card, &mut self.to_host),
            Way::ToHost => (&mut self.to_host, &mut self.to_card),
        }
    }

    /// Busy time of a direction, including DLLPs and ordered sets between TLPs.
    pub(super) fn busy(&self, way: Way) -> Duration {
        match way {
            Way::ToCard => self.to_card.busy,
            Way::ToHost => self.to_host.busy,
        }
    }

    /// Returns the first instant from `from` on at which a read request has a credit.
    pub(super) fn request_credit(&self, from: Time) -> Time {
        self.to_host.non_posted.earliest(from, 0)
    }

    /// Sends a TLP at `from` or later, after all earlier TLPs. `now` is the simulation's clock.
    ///
    /// DLLPs that are ready and ordered sets that are due go first. The receiver's Acks and UpdateFCs for this TLP will
    /// go between the TLPs of the other direction.
    pub(super) fn send(&mut self, way: Way, now: Time, from: Time, tlp: Tlp) -> Sent {
        self.send_held(way, now, from, tlp, |_| Duration::ZERO)
    }

    /// As [`Wires::send`]. `held` takes the time at which the TLP's last byte leaves. It returns the time for which the
    /// receiver's buffer holds the TLP. The credits return after that.
    pub(super) fn send_held(
        &mut self,
        way: Way,
        now: Time,
        from: Time,
        tlp: Tlp,
        held: impl FnOnce(Time) -> Duration,
    ) -> Sent {
        let (occupied, each, skip) = (self.gap.cover(tlp.bytes), self.dllp, self.skip);
        let (port_latency, ack_delay, update_delay) = (self.port_latency, self.ack_delay, self.update_delay);
        let data = tlp.data_credits();
        let (wire, back) = self.ways(way);

        let from = from.max(wire.free).max(wire.sent + tlp.apart);
        let mut start = wire.credits(tlp.class).earliest(from, data);
        loop {
            wire.send_dllps(start, each);
            wire.send_skips(start, skip);
            if wire.free <= start {
                break;
            }
            start = wire.free;
        }
        let end = start + occupied;
        wire.free = end;
        wire.busy += occupied;
        let before = std::mem::replace(&mut wire.sent, end);
        wire.credits(tlp.class).take(start, data);

        // DLLPs of the other direction that are in the past are dropped, so that an idle direction keeps no state.
        back.send_dllps(now, each);
        let received = end + port_latency;
        if received >= wire.ack {
            wire.ack = received + ack_delay;
            back.dllps.push(Reverse(wire.ack));
        }
        let taken = received + held(end);
        let credits = wire.credits(tlp.class);
        if !credits.is_infinite() {
            if taken >= credits.update {
                credits.update = taken + update_delay;
                back.dllps.push(Reverse(credits.update));
            }
            let returned = credits.update + each + port_latency;
            credits.give_back(returned, data);
        }
        Sent { start, end, before }
    }

    /// Accounts in `path` for the wait until a message's first TLP left.
    pub(super) fn waited(
        &mut self,
        way: Way,
        message: Option<MessageId>,
        sent: Sent,
        path: &mut Path,
        (stage, queued): Stages,
    ) {
        let (wire, _) = self.ways(way);
        match &wire.last {
            // This TLP waited for the previous TLP of the same message, so that TLP's path is the critical path.
            Some((last, before))
                if Some(*last) == message && sent.before > path.at() && before.leads(path) =>
            {
                path.clone_from(before);
                path.advance(stage, sent.before);
            }
            _ => {}
        }
        path.advance(queued, sent.start);
        wire.last = message.map(|message| (message, path.clone()));
    }
}

/// The stage for time on the link, and the stage for the wait for the link.
pub(super) type Stages = (Stage, Stage);
