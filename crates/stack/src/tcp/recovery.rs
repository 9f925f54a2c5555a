//! Processes acknowledgements: measures round trips, detects losses, and limits the bytes in flight.
//!
//! With SACK, losses are detected by time: bytes are lost if they were sent before bytes that have arrived. If the
//! network may reorder, missing bytes may arrive up to a quarter of the shortest round trip later (RACK: RFC 8985).
//! This rule also detects lost retransmissions. Without SACK, three duplicate acknowledgements show a loss, and so do
//! partial acknowledgements (NewReno: RFC 6582). In both cases the congestion window, less the bytes in flight, limits
//! transmissions (RFC 6675).

#[cfg(test)]
mod tests;

use super::flight::{Delivered, Mark};
use super::{Tcb, TcpOptions};
use nicety_types::{Duration, Time};

/// Number of duplicate acknowledgements, or of segments beyond a hole, that show a loss.
const DUPLICATES: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// Fast recovery: acknowledgements have shown that segments are lost, and the sender retransmits them.
    Fast,
    /// Recovery after the retransmission timeout.
    Timeout,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    phase: Phase,
    /// The end of the bytes sent when the last recovery began. When this position is acknowledged, the recovery ends, and
    /// another recovery can begin.
    high: i64,
    /// Whether the next lost segment is sent regardless of the congestion window.
    pub force: bool,
    duplicates: usize,
    /// The send time and the end of the delivered record that was sent last. `rtt` is its round-trip time.
    newest: Option<(Time, i64)>,
    rtt: Duration,
    /// The highest delivered position, and whether the network has reordered segments.
    farthest: i64,
    reorders: bool,
    /// The end of the sent bytes after the probe for a lost tail, and whether the probe was a retransmission.
    tail: Option<(i64, bool)>,
    /// The first unacknowledged position at the last retransmission timeout.
    timed_out: Option<i64>,
}

impl Tcb {
    /// Processes a valid acknowledgement. Returns the number of bytes that it frees in the send buffer.
    pub(super) fn take_ack(
        &mut self,
        now: Time,
        ack: i64,
        start: i64,
        window: u16,
        options: &TcpOptions,
        is_plain: bool,
    ) -> usize {
        let (before, queued) = (self.una, self.queued());
        let outstanding = (self.next - before) as usize;
        let mut delivered = Delivered::default();
        let advanced = ack > before;
        if advanced {
            self.flight.acknowledge(ack, &mut delivered);
            // The peer may have accepted the byte of a probe.
            (self.una, self.next) = (ack, self.next.max(ack));
            (self.timers.persist_backoff, self.due.tail) = (0, false);
        }
        if self.sack {
            for (first, last) in options.sacks.iter() {
                let place = |number| self.numbering.position(number, self.una);
                let (first, last) = (place(first).max(self.una), place(last));
                if first < last && last <= self.next {
                    self.flight.sack(first, last, &mut delivered);
                }
            }
        }
        let same_window = self.update_window(ack, start, window);
        // Karn's rule.
        if let Some(sent) = delivered.in_order.filter(|_| !delivered.resent).or(delivered.early) {
            self.rtt.measured(now.saturating_since(sent));
        }
        if advanced {
            self.timers.retransmit = (!self.flight.is_empty()).then(|| now + self.rtt.timeout());
        }
        let is_duplicate = !advanced && ack == self.una && is_plain && same_window;
        let repaired = self.answer_tail(ack, is_duplicate && options.sacks.is_empty(), outstanding);
        let phase = self.recovery.phase;
        if self.recovery.phase != Phase::Open && self.una >= self.recovery.high {
            (self.recovery.phase, self.recovery.duplicates, self.recovery.force) = (Phase::Open, 0, false);
        }
        if self.sack {
            self.note(now, ack, &delivered);
            if self.flight.sacked() > 0 || self.recovery.phase != Phase::Open {
                self.detect(now);
            } else {
                self.timers.reorder = None;
            }
        } else {
            self.count_duplicates(is_duplicate, advanced, (ack - before) as usize);
        }
        self.recover(now, outstanding);
        // The congestion window grows only if it limited transmissions (RFC 9438, 5.8).
        let use_of_it =
            if self.congestion.is_slow_start() { 2 * outstanding } else { outstanding + self.segment };
        if advanced && phase != Phase::Fast && !repaired && use_of_it >= self.congestion.window() {
            self.congestion.acknowledged(now, (ack - before) as usize, self.rtt.smooth());
        }
        if advanced || delivered.bytes > 0 {
            self.arm_probe(now);
        }
        queued - self.queued()
    }

    /// Takes the window of a segment, unless the segment is older than the last update. Returns whether the window is
    /// unchanged.
    fn update_window(&mut self, ack: i64, start: i64, window: u16) -> bool {
        let window = i64::from(window) << self.peer_scale;
        let same = window == self.window;
        if ack >= self.una && (start, ack) >= self.updated {
            self.updated = (start, ack);
            self.window = window;
            self.most_window = self.most_window.max(window);
            if window > 0 {
                self.timers.persist_backoff = 0;
            }
        }
        same
    }

    /// Remembers the delivered record that was sent last, and detects reordering (RFC 8985, 6.2).
    fn note(&mut self, now: Time, ack: i64, delivered: &Delivered) {
        let recovery = &mut self.recovery;
        if delivered.lowest.is_some_and(|end| end < recovery.farthest) {
            recovery.reorders = true;
        }
        recovery.farthest = recovery.farthest.max(ack);
        let Some((sent, end, again)) = delivered.last else { return };
        recovery.farthest = recovery.farthest.max(end);
        let rtt = now.saturating_since(sent);
        // A round trip shorter than the shortest belongs to the original transmission.
        let is_false = again && self.rtt.shortest().is_some_and(|shortest| rtt < shortest);
        if !is_false && recovery.newest.is_none_or(|newest| newest < (sent, end)) {
            (recovery.newest, recovery.rtt) = (Some((sent, end)), rtt);
        }
    }

    /// Returns the additional time that a reordered segment has to arrive (RFC 8985, 6.2.4).
    fn reordering(&self) -> Duration {
        let sure = self.recovery.phase != Phase::Open || self.flight.sacked_segments() >= DUPLICATES;
        if sure && !self.recovery.reorders {
            return Duration::ZERO;
        }
        let quarter = self.rtt.shortest().map_or(Duration::ZERO, |rtt| Duration::from_ps(rtt.ps() / 4));
        self.rtt.smooth().map_or(quarter, |smooth| quarter.min(smooth))
    }

    /// Detects lost bytes: bytes that were sent before delivered bytes, and that have had time to arrive.
    pub(super) fn detect(&mut self, now: Time) {
        let Some(newest) = self.recovery.newest else { return };
        let wait = self.recovery.rtt + self.reordering();
        let mut later = None;
        self.flight.lose(|record| {
            let due = record.sent + wait;
            let is_older = (record.sent, record.end) < newest;
            if is_older && due > now {
                later = later.max(Some(due));
            }
            is_older && due <= now
        });
        self.timers.reorder = later;
    }

    fn count_duplicates(&mut self, is_duplicate: bool, advanced: bool, acked: usize) {
        let recovery = &mut self.recovery;
        if advanced {
            recovery.duplicates = match recovery.phase {
                Phase::Fast => recovery.duplicates.saturating_sub((acked / self.segment).max(1) - 1),
                _ => 0,
            };
            if recovery.phase == Phase::Fast {
                // A partial acknowledgement: the next segment is lost too.
                recovery.force |= self.flight.lose_first(self.segment);
            }
        } else if is_duplicate && !self.flight.is_empty() {
            recovery.duplicates += 1;
            if recovery.duplicates == DUPLICATES && recovery.phase == Phase::Open {
                self.flight.lose_first(self.segment);
            }
        }
    }

    /// Starts a recovery if there is a new loss.
    pub(super) fn recover(&mut self, now: Time, outstanding: usize) {
        if self.recovery.phase == Phase::Open && self.flight.lost() > 0 {
            self.congestion.lost(outstanding);
            (self.recovery.phase, self.recovery.high, self.recovery.force) = (Phase::Fast, self.next, true);
            self.counts.recoveries += 1;
            (self.timers.probe, self.due.tail, self.recovery.tail) = (None, false, None);
            self.timers.retransmit = Some(now + self.rtt.timeout());
        }
    }

    /// Handles the retransmission timeout (RFC 6298, 5.4; RFC 8985, 6.3).
    pub(super) fn time_out(&mut self, now: Time) {
        self.rtt.back_off();
        self.timers.retransmit = Some(now + self.rtt.timeout());
        if self.state.is_handshake() {
            self.due.syn = true;
            return;
        }
        self.counts.timeouts += 1;
        (self.timers.probe, self.timers.reorder, self.due.tail) = (None, None, false);
        if self.flight.first().is_some_and(|first| first.mark == Mark::Sacked) {
            self.flight.forget_sacks();
        }
        let again = self.recovery.timed_out == Some(self.una);
        self.congestion.timed_out((self.next - self.una) as usize, again);
        let (una, wait) = (self.una, self.recovery.rtt + self.reordering());
        let by_time = self.sack && self.recovery.newest.is_some();
        self.flight.lose(|record| !by_time || record.start == una || record.sent + wait <= now);
        let recovery = &mut self.recovery;
        (recovery.phase, recovery.high, recovery.force) = (Phase::Timeout, self.next, true);
        (recovery.duplicates, recovery.tail, recovery.timed_out) = (0, None, Some(una));
    }

    /// Sets the time of the probe for a lost tail (RFC 8985, 7.2).
    pub(super) fn arm_probe(&mut self, now: Time) {
        let recovery = &self.recovery;
        let may =
            self.setup.loss_probe && self.sack && recovery.phase == Phase::Open && recovery.tail.is_none();
        self.timers.probe = None;
        if may && !self.flight.is_empty() && self.flight.sacked() == 0 {
            let alone = (self.next - self.una) as usize <= self.segment;
            let delay = self.setup.delayed_ack.filter(|_| alone);
            let due = now + self.rtt.probe(self.setup.initial_rto, delay);
            self.timers.probe = Some(self.timers.retransmit.map_or(due, |timeout| timeout.min(due)));
        }
    }

    /// Records a probe for a lost tail. `again` says that the segment is a retransmission.
    pub(super) fn probed_tail(&mut self, again: bool) {
        self.recovery.tail = Some((self.next, again));
        self.counts.recoveries += 1;
    }

    /// Evaluates the acknowledgement of a probe for a lost tail (RFC 8985, 7.4). Returns whether the probe has repaired
    /// a loss that was not detected otherwise.
    fn answer_tail(&mut self, ack: i64, is_duplicate: bool, outstanding: usize) -> bool {
        let Some((end, again)) = self.recovery.tail.filter(|&(end, _)| ack >= end) else { return false };
        let repaired = again && ack > end;
        if !again || repaired || is_duplicate {
            self.recovery.tail = None;
        }
        if repaired {
            self.congestion.lost(outstanding);
        }
        repaired
    }

    /// Bytes in flight (RFC 6675's pipe). Without SACK, each duplicate acknowledgement is a delivered segment.
    fn pipe(&self) -> usize {
        let gone = self.flight.sacked() + self.flight.lost() + self.recovery.duplicates * self.segment;
        ((self.next - self.una) as usize).saturating_sub(gone)
    }

    /// Bytes that may be sent in addition to those in flight.
    pub(super) fn allowed(&self) -> usize {
        self.congestion.window().saturating_sub(self.pipe())
    }
}
