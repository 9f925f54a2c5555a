//! What has crossed one connection's ends, seen from its segments: sequence numbers, round-trip times, and losses
//! for which smoltcp would wait for its retransmission timeout.
//!
//! smoltcp's sender retransmits one segment after three duplicate acknowledgements, and everything after a timeout of
//! one second of its clock. Three losses are left to the timeout: of a second segment in the same window, of the tail
//! of what was sent, and of a retransmission. A [`Watch`] says when one of these has happened; the connection
//! then gives smoltcp three duplicate acknowledgements ([`crate::connection`]), to which it retransmits at once.

use crate::frame::{ACK, FIN, RST, SYN, TcpHeader, before};
use nicety_types::{Duration, Time};

/// The view of one end.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The first sequence number of each direction, once seen.
    first_sent: Option<u32>,
    pub first_received: Option<u32>,
    /// Bytes acknowledged by the peer, and taken in order from it; modulo 2^32.
    acked: u32,
    received: u32,
    syn_acked: bool,
    fin_acked: bool,
    fin_received: bool,
    /// One more than the last sequence number sent.
    sent_until: u32,
    /// The last windows in segments without SYN, as written.
    pub peer_window: Option<u16>,
    pub own_window: Option<u16>,
    /// The end of a segment that a round trip is measured with, and when it was sent.
    sample: Option<(u32, Time)>,
    /// Smoothed round-trip time and its variation (RFC 6298).
    rtt: Option<(Duration, Duration)>,
    duplicates: u32,
    nudged: bool,
    /// Where a fast recovery ends (RFC 6582), and where what a timeout sends again ends.
    recover: Option<u32>,
    resent_until: Option<u32>,
    /// When the tail is probed for.
    pub probe_at: Option<Time>,
    backoff: u32,
}

/// What a segment that was sent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    New,
    Again,
    Control,
}

impl Watch {
    /// The first sequence number that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u32 {
        let controls = u32::from(self.syn_acked) + u32::from(self.fin_acked);
        self.first_sent.unwrap_or(0).wrapping_add(self.acked).wrapping_add(controls)
    }

    /// The sequence number that is expected next.
    pub fn expected(&self) -> Option<u32> {
        let start = self.first_received?.wrapping_add(1);
        Some(start.wrapping_add(self.received).wrapping_add(u32::from(self.fin_received)))
    }

    /// Sequence numbers sent and not acknowledged.
    pub fn outstanding(&self) -> u32 {
        self.sent_until.wrapping_sub(self.unacknowledged())
    }

    /// Whether the peer knows this end's window with its scale.
    pub fn is_window_known(&self) -> bool {
        self.own_window.is_some()
    }

    pub fn sent(&mut self, now: Time, tcp: &TcpHeader, payload: usize) -> Sent {
        let (first, span) = (self.first_sent.is_none(), tcp.span(payload));
        if first {
            (self.first_sent, self.sent_until) = (Some(tcp.seq), tcp.seq);
        }
        if tcp.flags & SYN == 0 {
            self.own_window = Some(tcp.window);
        }
        // A probe of a closed window is not a part of what was sent: the byte goes out anew when the window opens.
        let probe = self.peer_window == Some(0) && payload == 1 && tcp.seq == self.sent_until;
        if span == 0 || probe || tcp.flags & RST != 0 {
            return Sent::Control;
        }
        let end = tcp.seq.wrapping_add(span);
        if !before(tcp.seq, self.sent_until) {
            if self.sample.is_none() {
                self.sample = Some((end, now));
            }
            self.sent_until = end;
            return Sent::New;
        }
        // Karn's rule.
        self.sample = None;
        if before(self.sent_until, end) {
            self.sent_until = end;
        }
        if tcp.seq == self.unacknowledged() {
            if self.duplicates >= 3 || self.nudged {
                self.recover = self.recover.or(Some(self.sent_until));
            } else {
                (self.recover, self.resent_until) = (None, Some(self.sent_until));
            }
        }
        Sent::Again
    }

    /// A duplicate acknowledgement, as smoltcp counts them.
    pub fn saw(&mut self, tcp: &TcpHeader, payload: usize) {
        let plain = tcp.flags & (SYN | FIN | RST | ACK) == ACK && payload == 0;
        let same = self.peer_window == Some(tcp.window) && tcp.ack == self.unacknowledged();
        if plain && same && self.outstanding() > 0 {
            self.duplicates += 1;
        } else if tcp.ack != self.unacknowledged() || !same {
            self.duplicates = 0;
        }
        if tcp.flags & SYN == 0 {
            self.peer_window = Some(tcp.window);
        } else if self.first_received.is_none() {
            self.first_received = Some(tcp.seq);
        }
    }

    /// Bytes came in order, or the peer's end.
    pub fn took(&mut self, bytes: usize, fin: bool) {
        self.received = self.received.wrapping_add(bytes as u32);
        self.fin_received |= fin;
    }

    /// The peer has acknowledged more. Whether another segment of the same window is lost.
    pub fn acknowledged(&mut self, now: Time, bytes: usize, syn: bool, fin: bool) -> bool {
        self.acked = self.acked.wrapping_add(bytes as u32);
        let more = bytes > 0 || syn && !self.syn_acked || fin && !self.fin_acked;
        self.syn_acked |= syn;
        self.fin_acked |= fin;
        if !more {
            return false;
        }
        let now_at = self.unacknowledged();
        if before(self.sent_until, now_at) {
            self.sent_until = now_at;
        }
        (self.duplicates, self.nudged, self.backoff) = (0, false, 0);
        if let Some((end, at)) = self.sample
            && !before(now_at, end)
        {
            self.sample = None;
            self.measured(now.saturating_since(at));
        }
        self.resent_until = self.resent_until.filter(|&end| before(now_at, end));
        self.recover = self.recover.filter(|&end| before(now_at, end));
        self.recover.is_some() && self.resent_until.is_none()
    }

    fn measured(&mut self, rtt: Duration) {
        self.rtt = Some(match self.rtt {
            None => (rtt, Duration::from_ps(rtt.ps() / 2)),
            Some((smooth, variation)) => {
                let off = smooth.ps().abs_diff(rtt.ps());
                (
                    Duration::from_ps((smooth.ps() * 7).saturating_add(rtt.ps()) / 8),
                    Duration::from_ps((variation.ps() * 3).saturating_add(off) / 4),
                )
            }
        });
    }

    /// Sets the probe's time anew: two round trips after the last segment or acknowledgement, doubled by each probe
    /// without an answer; the last segment alone may wait for a delayed acknowledgement (RFC 8985, 7.2).
    pub fn arm(&mut self, now: Time, limit: Duration, delayed_ack: Duration, segment: usize) {
        self.probe_at = None;
        let Some((smooth, variation)) = self.rtt else { return };
        if self.outstanding() == 0 || self.peer_window == Some(0) {
            return;
        }
        let mut wait = (smooth * 2).max(smooth + variation * 4);
        if self.outstanding() as usize <= segment {
            wait += delayed_ack;
        }
        let wait = wait * (1 << self.backoff.min(20));
        if wait < limit {
            self.probe_at = Some(now + wait);
        }
    }

    /// How long smoltcp is left alone with what seems to be stuck: doubled each time, up to beyond its longest timeout,
    /// since duplicates put off its probe of a closed window.
    pub fn patience(&self, min_rto: Duration) -> Duration {
        min_rto * (1 << self.backoff.min(7))
    }

    /// The probe's time has come.
    pub fn probed(&mut self) {
        self.backoff += 1;
        self.probe_at = None;
    }

    /// smoltcp was given duplicate acknowledgements.
    pub fn nudged(&mut self) {
        self.nudged = true;
        self.sample = None;
    }
}
