//! The processing of a segment (RFC 9293, 3.10.7, with the checks of RFC 5961 and RFC 7323).

use super::{State, Tcb, TcpOptions};
use crate::frame::{ACK, FIN, RST, SYN, TcpHeader};
use crate::spec::LEAST_ACK_SEGMENTS;
use nicety_types::{Duration, Time};

/// Minimum interval between replies to invalid segments without payload, so that two ends do not reply to each other
/// for ever (RFC 5961, 10; Linux's `tcp_invalid_ratelimit`).
const CHALLENGES: Duration = Duration::from_us(500_000);
/// Maximum number of pending acknowledgements of out-of-order segments. Further acknowledgements carry no new information.
const MOST_OWED: u8 = 64;
/// Number of segments, after an out-of-order segment, that this end acknowledges without delay. A sender with a reduced
/// window may have no second segment in flight (Linux's `TCP_MAX_QUICKACKS`).
const QUICK: u8 = 16;

/// The changes of a connection by one received segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Additional bytes that the program can read, and additional room in its send buffer.
    pub readable: usize,
    pub acknowledged: usize,
    /// Whether all bytes of the segment arrived before, earlier bytes are missing, or the segment does not fit into the
    /// receive buffer.
    pub duplicate: bool,
    pub out_of_order: bool,
    pub beyond: bool,
    /// The reply must be a reset, as if there were no connection.
    pub refused: bool,
    /// The segment has reset the connection.
    pub reset: bool,
}

impl Tcb {
    /// Processes an intact segment of this connection.
    pub fn input(&mut self, now: Time, tcp: &TcpHeader, options: &TcpOptions, payload: &[u8]) -> Taken {
        let mut taken = Taken::default();
        match self.state {
            State::Closed => taken.refused = tcp.flags & RST == 0,
            State::SynSent => self.input_syn_sent(now, tcp, options, &mut taken),
            _ => self.input_synchronized(now, tcp, options, payload, &mut taken),
        }
        self.after(now);
        taken
    }

    fn input_syn_sent(&mut self, now: Time, tcp: &TcpHeader, options: &TcpOptions, taken: &mut Taken) {
        let is_ack = tcp.flags & ACK != 0;
        if is_ack && (self.next == 0 || self.numbering.position(tcp.ack, 1) != 1) {
            taken.refused = tcp.flags & RST == 0;
            return;
        }
        if tcp.flags & RST != 0 {
            if is_ack {
                self.forget();
                taken.reset = true;
            }
            return;
        }
        if tcp.flags & SYN == 0 {
            return;
        }
        self.heard(now);
        self.meet(tcp, options);
        if is_ack {
            self.establish(now);
            self.updated = (0, 1);
            self.acks.now = true;
        } else {
            // A simultaneous open.
            (self.state, self.due.syn) = (State::SynReceived, true);
        }
    }

    fn input_synchronized(
        &mut self,
        now: Time,
        tcp: &TcpHeader,
        options: &TcpOptions,
        payload: &[u8],
        taken: &mut Taken,
    ) {
        let mut start = self.receiver.numbering.position(tcp.seq, self.receiver.next());
        let mut flags = tcp.flags;
        if self.state == State::SynReceived && flags & SYN != 0 && start == 0 {
            if flags & ACK == 0 {
                // The peer repeats its SYN, so the SYN-ACK was lost.
                self.due.syn = true;
                return;
            }
            // A simultaneous open: this SYN acknowledges the SYN of this end.
            (start, flags, self.acks.now) = (1, flags & !SYN, true);
        }
        if !self.is_fresh(options, flags) || !self.is_in_window(start, flags, payload) {
            self.answer_unacceptable(now, start, flags, payload, taken);
            return;
        }
        if flags & RST != 0 {
            // Only the next expected sequence number proves that the sender sees the connection's segments (RFC 5961,
            // 3).
            if start == self.receiver.next() {
                taken.reset = true;
                self.forget();
            } else {
                self.challenge(now);
            }
            return;
        }
        if flags & SYN != 0 {
            return self.challenge(now);
        }
        if flags & ACK == 0 {
            return;
        }
        let ack = self.numbering.position(tcp.ack, self.una);
        if self.state == State::SynReceived {
            if ack != 1 || self.next != 1 {
                taken.refused = true;
                return;
            }
            self.establish(now);
            self.updated = (start - 1, ack);
        }
        if ack > self.next.max(self.probed) || ack < self.una - self.most_window.max(1) {
            return self.challenge(now);
        }
        self.heard(now);
        if let (Some(recent), Some((stamp, _))) = (&mut self.recent_stamp, options.stamps)
            && start <= self.acks.sent
            && stamp.wrapping_sub(*recent) as i32 >= 0
        {
            *recent = stamp;
        }
        let is_plain = payload.is_empty() && flags & FIN == 0;
        taken.acknowledged = self.take_ack(now, ack, start, tcp.window, options, is_plain);
        if self.fin && self.una > self.end {
            self.state = self.state.fin_acknowledged();
            match self.state {
                State::TimeWait => self.wait_for_late_segments(now),
                State::Closed => return self.forget(),
                _ => {}
            }
        }
        if !is_plain {
            self.take_payload(now, start, payload, flags & FIN != 0, taken);
        }
    }

    /// Whether a segment is no older than the segments received (PAWS: RFC 7323, 5).
    fn is_fresh(&self, options: &TcpOptions, flags: u8) -> bool {
        match (self.recent_stamp, options.stamps) {
            _ if flags & RST != 0 => true,
            (Some(recent), Some((stamp, _))) => stamp.wrapping_sub(recent) as i32 >= 0,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Whether a part of a segment is in the window. A segment without payload may also be at the window's end.
    fn is_in_window(&self, start: i64, flags: u8, payload: &[u8]) -> bool {
        let (next, edge) = (self.receiver.next(), self.receiver.edge());
        let controls = i64::from(flags & SYN != 0) + i64::from(flags & FIN != 0);
        let end = start + payload.len() as i64 + controls;
        if start == end {
            return (next..=edge).contains(&start);
        }
        // A FIN takes no room.
        let fin_alone = flags & FIN != 0 && payload.is_empty() && start == next;
        end > next && start < edge || fin_alone
    }

    fn answer_unacceptable(&mut self, now: Time, start: i64, flags: u8, payload: &[u8], taken: &mut Taken) {
        if flags & RST != 0 {
            return;
        }
        let end = start + payload.len() as i64;
        taken.duplicate = !payload.is_empty() && end <= self.receiver.next();
        taken.beyond = !payload.is_empty() && start >= self.receiver.edge();
        if payload.is_empty() && flags & FIN == 0 {
            return self.challenge(now);
        }
        self.heard(now);
        self.owe();
        if self.state == State::TimeWait && flags & FIN != 0 {
            self.wait_for_late_segments(now);
        }
    }

    fn owe(&mut self) {
        self.acks.owed = (self.acks.owed + 1).min(MOST_OWED);
    }

    /// Replies to an invalid segment, so that a peer that has lost its state learns this end's state.
    fn challenge(&mut self, now: Time) {
        if self.acks.challenged.is_none_or(|last| now.saturating_since(last) >= CHALLENGES) {
            self.acks.challenged = Some(now);
            self.owe();
        }
    }

    /// Returns the number of received, unacknowledged bytes above which this end acknowledges at once.
    fn waits_for(&self) -> i64 {
        i64::from(LEAST_ACK_SEGMENTS + self.acks.more - 1) * self.segment as i64
    }

    /// Whether a segment ends a burst: it is short, and earlier bytes also wait for an acknowledgement. This applies
    /// only if the spec lets an acknowledgement wait for more than the minimum number of segments.
    fn is_tail(&self, payload: &[u8], waiting: i64) -> bool {
        self.setup.ack_segments > LEAST_ACK_SEGMENTS
            && payload.len() < self.segment
            && waiting > payload.len() as i64
    }

    /// Handles the end of the acknowledgement delay. If more than one segment waits, the peer stopped before it had sent
    /// the expected number of segments. From now on, an acknowledgement waits for fewer segments.
    pub(super) fn was_late(&mut self) {
        self.acks.now = true;
        if self.receiver.next() - self.acks.sent > self.segment as i64 {
            self.acks.fewer = self.acks.fewer.saturating_add(1);
            self.acks.more = 0;
        }
    }

    /// Returns the number of segments, beyond the minimum, for which an acknowledgement may wait.
    fn most_more(&self) -> u8 {
        (self.setup.ack_segments - LEAST_ACK_SEGMENTS).saturating_sub(self.acks.fewer)
    }

    fn take_payload(&mut self, now: Time, start: i64, payload: &[u8], fin: bool, taken: &mut Taken) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            return self.owe();
        }
        let got = self.receiver.take(start, payload, fin);
        (taken.readable, taken.duplicate) = (got.readable, got.duplicate);
        (taken.out_of_order, taken.beyond) = (got.out_of_order && got.readable == 0, got.beyond);
        if got.finished {
            self.state = self.state.finished();
            if self.state == State::TimeWait {
                self.wait_for_late_segments(now);
            }
        }
        let waiting = self.receiver.next() - self.acks.sent;
        if got.duplicate || got.out_of_order || got.beyond {
            self.acks.quick = QUICK;
            self.owe();
        } else if got.finished
            || waiting > self.waits_for()
            || self.acks.quick > 0
            || self.is_tail(payload, waiting)
        {
            self.acks.quick = self.acks.quick.saturating_sub(1);
            self.acks.now = true;
            self.acks.more = (self.acks.more + 1).min(self.most_more());
        } else if let Some(delay) = self.setup.delayed_ack.filter(|delay| !delay.is_zero()) {
            self.acks.at.get_or_insert(now + delay);
        } else {
            self.acks.now = true;
        }
    }
}
