//! Timers of a connection: delayed acknowledgements, retransmissions, probes, TIME-WAIT, and the timeout of a silent
//! peer.

use super::{State, Tcb};
use nicety_types::{Duration, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// Retransmission of the SYN, or of the first unacknowledged byte.
    pub retransmit: Option<Time>,
    /// The next probe of a closed window, and the number of probes so far.
    pub persist: Option<Time>,
    pub persist_backoff: u32,
    /// Whether the peer has sent nothing since the last probe of its closed window.
    asked: bool,
    /// The probe for a lost tail.
    pub probe: Option<Time>,
    /// The end of the wait for segments that may be reordered rather than lost.
    pub reorder: Option<Time>,
    pub time_wait: Option<Time>,
    /// The time of the peer's last segment, or of the start of the wait for the peer, whichever is later. `None` while no
    /// answer is outstanding.
    heard: Option<Time>,
}

/// The result of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The connection continues.
    Fine,
    /// The peer was silent longer than the timeout allows.
    TimedOut,
}

impl Tcb {
    /// Whether this end waits for a reply of the peer.
    fn is_waiting(&self) -> bool {
        match self.state {
            State::Closed | State::TimeWait => false,
            state => state.is_handshake() || self.una < self.end + i64::from(self.fin),
        }
    }

    /// The maximum silence of the peer while an answer is outstanding.
    fn patience(&self) -> Duration {
        if self.state.is_handshake() { self.setup.connect_timeout } else { self.setup.timeout }
    }

    /// Records that the peer has sent a valid segment.
    pub(super) fn heard(&mut self, now: Time) {
        self.timers.heard = self.timers.heard.map(|_| now);
        self.timers.asked = false;
    }

    /// Starts TIME-WAIT, for twice the maximum segment lifetime.
    pub(super) fn wait_for_late_segments(&mut self, now: Time) {
        self.timers.time_wait = Some(now + self.setup.time_wait);
    }

    /// The wait for the next probe of a closed window, without its limit.
    fn probe_wait(&self) -> Duration {
        self.rtt.timeout() * (1 << self.timers.persist_backoff.min(40))
    }

    fn longest_wait(&self) -> Duration {
        self.setup.max_rto.max(self.setup.min_rto)
    }

    /// Whether this end only probes the peer's closed window, at the longest interval, and the peer has answered the last
    /// probe. If the peer's program never reads, this goes on for ever (RFC 9293, 3.8.6.1).
    pub fn only_probes(&self) -> bool {
        let timers = &self.timers;
        let others = [timers.retransmit, timers.probe, timers.reorder, timers.time_wait, self.acks.at];
        let silence = timers.heard.map(|heard| heard + self.patience());
        let is_next = timers.persist.is_some_and(|persist| silence.is_none_or(|silence| persist < silence));
        is_next
            && timers.persist_backoff > 0
            && !timers.asked
            && others.iter().all(Option::is_none)
            && self.probe_wait() >= self.longest_wait()
    }

    /// Updates the timers of the silent peer and the closed window. Called after each change of the connection.
    pub(super) fn after(&mut self, now: Time) {
        self.timers.heard = if self.is_waiting() { Some(self.timers.heard.unwrap_or(now)) } else { None };
        if self.is_window_closed() {
            if !self.due.persist && self.timers.persist.is_none() {
                self.timers.persist = Some(now + self.probe_wait().min(self.longest_wait()));
            }
        } else {
            (self.timers.persist, self.due.persist) = (None, false);
        }
    }

    /// Returns the time at which [`Tcb::on_timer`] is due.
    pub fn deadline(&self) -> Option<Time> {
        let timers = &self.timers;
        let silence = timers.heard.map(|heard| heard + self.patience());
        let own = [timers.retransmit, timers.persist, timers.probe, timers.reorder, timers.time_wait];
        own.into_iter().chain([silence, self.acks.at]).flatten().min()
    }

    /// Handles all expired timers. The caller then takes the segments to send.
    pub fn on_timer(&mut self, now: Time) -> Expired {
        let is_due = |timer: &mut Option<Time>| timer.take_if(|at| *at <= now).is_some();
        if self.timers.heard.is_some_and(|heard| heard + self.patience() <= now) {
            return Expired::TimedOut;
        }
        if is_due(&mut self.timers.time_wait) {
            self.forget();
        }
        if is_due(&mut self.acks.at) {
            self.was_late();
        }
        if is_due(&mut self.timers.reorder) {
            self.detect(now);
            self.recover(now, (self.next - self.una) as usize);
        }
        if is_due(&mut self.timers.probe) {
            // The probe comes instead of a retransmission, so the retransmission timer starts again.
            self.due.tail = true;
            self.timers.retransmit = Some(now + self.rtt.timeout());
        }
        if is_due(&mut self.timers.persist) {
            self.due.persist = true;
            self.timers.persist_backoff += 1;
            self.timers.asked = true;
        }
        if is_due(&mut self.timers.retransmit) {
            self.time_out(now);
        }
        self.after(now);
        Expired::Fine
    }
}
