//! Selects the next segment. Only `Tcb::action` decides whether a segment is sent, and which one.

#[cfg(test)]
mod tests;

use super::options::{STAMPS, TcpOptions};
use super::receive::scale_for;
use super::{State, Tcb};
use crate::frame::{ACK, FIN, PSH, RST, SYN};
use nicety_types::Time;

/// Events that require a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendReasons {
    pub syn: bool,
    pub reset: bool,
    /// The connection must probe for a lost tail: the last bytes sent were not acknowledged.
    pub tail: bool,
    /// The connection must probe the peer's closed window.
    pub persist: bool,
}

/// A segment to send. Its payload is in the send buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: TcpOptions,
    /// The payload's position in the stream, and the number of its bytes.
    pub start: i64,
    pub payload: usize,
    /// Payload bytes in each frame, if a card segments the packet.
    pub segment: usize,
    /// Whether the segment was sent before.
    pub again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Reset,
    Syn,
    /// A retransmission of bytes that were lost, or of the tail that may be lost.
    Again {
        start: i64,
        end: i64,
        is_tail: bool,
    },
    New {
        payload: usize,
        fin: bool,
        is_tail: bool,
    },
    /// A byte beyond a closed window, as a probe.
    Probe,
    Ack,
}

impl Tcb {
    /// Whether there is a segment to send.
    pub fn has_output(&self) -> bool {
        self.action().is_some()
    }

    fn action(&self) -> Option<Action> {
        if self.due.reset {
            return Some(Action::Reset);
        }
        let answers = self.acks.now || self.acks.owed > 0;
        match self.state {
            State::Closed => return None,
            _ if self.due.syn => return Some(Action::Syn),
            State::SynSent => return None,
            State::SynReceived | State::TimeWait => return answers.then_some(Action::Ack),
            _ => {}
        }
        if self.flight.lost() > 0 {
            let segments = self.allowed() / self.segment;
            let most = (segments * self.segment).clamp(self.segment, self.burst);
            if let Some((start, end)) = self.flight.next_lost(most)
                && (self.recovery.force || (end - start) as usize <= self.allowed())
            {
                return Some(Action::Again { start, end, is_tail: false });
            }
        }
        if self.due.tail && !self.flight.is_empty() {
            return self.tail();
        }
        if let Some((payload, fin)) = self.new_data() {
            return Some(Action::New { payload, fin, is_tail: false });
        }
        if self.due.persist {
            return Some(Action::Probe);
        }
        answers.then_some(Action::Ack)
    }

    /// Returns the number of unsent bytes, and the number of bytes that the peer's window still allows.
    fn unsent(&self) -> (usize, usize) {
        let room = (self.una + self.window - self.next).max(0);
        ((self.end - self.next).max(0) as usize, room as usize)
    }

    /// Returns the probe for a lost tail: the next new segment if there is one, or else a retransmission of the last
    /// segment.
    fn tail(&self) -> Option<Action> {
        let (unsent, room) = self.unsent();
        let payload = unsent.min(room).min(self.segment);
        if payload > 0 {
            let fin = self.fin && payload == unsent;
            return Some(Action::New { payload, fin, is_tail: true });
        }
        let (start, end) = self.flight.last(self.segment)?;
        Some(Action::Again { start, end, is_tail: true })
    }

    /// Returns the number of new bytes to send now, and whether the FIN is sent with them. Only full segments are sent,
    /// unless the rules of RFC 9293, 3.8.6.2.1, with Nagle's algorithm, allow a smaller segment.
    fn new_data(&self) -> Option<(usize, bool)> {
        if self.next > self.end {
            return None;
        }
        let (unsent, room) = self.unsent();
        if unsent == 0 {
            // A FIN takes no room.
            return self.fin.then_some((0, true));
        }
        let mut payload = unsent.min(room).min(self.burst);
        let allowed = self.allowed();
        if payload > allowed {
            payload = allowed / self.segment * self.segment;
        }
        let tail = payload % self.segment;
        if tail > 0 {
            let is_idle = self.next == self.una && tail == payload;
            let worth = if payload == unsent {
                self.nodelay || is_idle || self.fin
            } else {
                (self.nodelay || is_idle) && 2 * tail as i64 >= self.most_window
            };
            if !worth {
                payload -= tail;
            }
        }
        (payload > 0).then_some((payload, self.fin && payload == unsent))
    }

    /// Whether the peer's closed window is the only reason why unsent bytes wait.
    pub(super) fn is_window_closed(&self) -> bool {
        let sends = self.state.is_synchronized() && self.state != State::TimeWait;
        sends && self.flight.is_empty() && self.next < self.end && self.new_data().is_none()
    }

    /// The next segment.
    pub fn output(&mut self, now: Time) -> Option<Sending> {
        let sending = match self.action()? {
            Action::Reset => {
                self.due.reset = false;
                self.plain(now, self.next, RST | ACK)
            }
            Action::Syn => self.output_syn(now),
            Action::Again { start, end, is_tail } => self.output_again(now, start, end, is_tail),
            Action::New { payload, fin, is_tail } => self.output_new(now, payload, fin, is_tail),
            Action::Probe => {
                self.due.persist = false;
                self.output_probe(now)
            }
            Action::Ack => {
                self.acks.owed = self.acks.owed.saturating_sub(1);
                let mut ack = self.plain(now, self.next, ACK);
                if self.sack && self.receiver.has_holes() {
                    let stamps = if self.recent_stamp.is_some() { STAMPS } else { 0 };
                    ack.options.sacks =
                        self.receiver.blocks((self.setup.options - stamps).saturating_sub(4) / 8);
                }
                ack
            }
        };
        self.after(now);
        Some(sending)
    }

    /// Returns a segment without payload. It acknowledges the bytes received in order.
    fn plain(&mut self, now: Time, position: i64, flags: u8) -> Sending {
        let stamps = self.recent_stamp.map(|recent| (stamp(now), recent));
        let window = self.receiver.announce(self.segment);
        (self.acks.now, self.acks.at, self.acks.sent) = (false, None, self.receiver.next());
        Sending {
            seq: self.numbering.number(position),
            ack: self.receiver.expected(),
            flags,
            window,
            options: TcpOptions { stamps, ..TcpOptions::default() },
            start: position,
            payload: 0,
            segment: self.segment,
            again: false,
        }
    }

    fn output_syn(&mut self, now: Time) -> Sending {
        let answers = self.state == State::SynReceived;
        let again = self.syn_sent.is_some();
        (self.syn_sent, self.syn_again, self.due.syn) = (Some(now), again, false);
        self.next = 1;
        self.timers.retransmit.get_or_insert(now + self.rtt.timeout());
        // A SYN-ACK has only options that the SYN has offered.
        let scales = !answers || self.receiver.is_scaled();
        let options = TcpOptions {
            segment: Some(self.setup.segment.min(0xffff) as u16),
            scale: scales.then(|| scale_for(self.setup.receive)),
            sack_permitted: self.sack,
            stamps: self.recent_stamp.map(|recent| (stamp(now), recent)),
            ..TcpOptions::default()
        };
        let mut syn = self.plain(now, 0, if answers { SYN | ACK } else { SYN });
        if !answers {
            syn.ack = 0;
        }
        Sending { window: self.receiver.announce_first(), options, again, ..syn }
    }

    fn output_again(&mut self, now: Time, start: i64, end: i64, is_tail: bool) -> Sending {
        self.flight.sent_again(now, start, end, self.segment);
        if is_tail {
            self.due.tail = false;
            self.probed_tail(true);
        }
        self.recovery.force = false;
        self.timers.retransmit.get_or_insert(now + self.rtt.timeout());
        let payload = (end.min(self.end) - start) as usize;
        let fin = if end > self.end { FIN } else { 0 };
        self.with_payload(now, start, payload, fin, true)
    }

    fn with_payload(&mut self, now: Time, start: i64, payload: usize, flags: u8, again: bool) -> Sending {
        let push = if payload > 0 && start + payload as i64 == self.end { PSH } else { 0 };
        self.last_sent = now;
        Sending { payload, again, ..self.plain(now, start, ACK | push | flags) }
    }

    fn output_new(&mut self, now: Time, payload: usize, fin: bool, is_tail: bool) -> Sending {
        if self.flight.is_empty() && now.saturating_since(self.last_sent) > self.rtt.timeout() {
            self.congestion.idle(self.setup.initial_window);
        }
        let start = self.next;
        self.next += payload as i64 + i64::from(fin);
        self.flight.push(now, start, self.next, self.segment);
        self.due.persist = false;
        self.timers.retransmit.get_or_insert(now + self.rtt.timeout());
        if is_tail {
            self.due.tail = false;
            self.probed_tail(false);
        }
        self.arm_probe(now);
        self.with_payload(now, start, payload, if fin { FIN } else { 0 }, false)
    }

    /// Sends one byte, although the peer's window may have no room for it. The peer replies, whether or not it accepts
    /// the byte.
    fn output_probe(&mut self, now: Time) -> Sending {
        let (unsent, room) = self.unsent();
        let payload = unsent.min(room).min(self.segment);
        if payload > 0 {
            // The window has some room, but less than the sender waits for. The probe uses this room.
            return self.output_new(now, payload, self.fin && payload == unsent, false);
        }
        self.probed = self.next + 1;
        self.with_payload(now, self.next, 1, 0, false)
    }
}

/// The time-stamp clock, in milliseconds.
fn stamp(now: Time) -> u32 {
    (now.ps() / 1_000_000_000) as u32
}
