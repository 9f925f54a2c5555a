//! A TCP connection (RFC 9293). The stack passes the time and received segments to it, and takes segments to send from
//! it.
//!
//! From the wire upwards: `options.rs` and `seq.rs` convert the options and sequence numbers of segments. `receive.rs`
//! with `ranges.rs` and `ring.rs` is the receiving half. `flight.rs` records the bytes in flight. `rtt.rs` computes the
//! retransmission timeout, and `congestion.rs` the congestion window. `input.rs` processes a segment, `recovery.rs` its
//! acknowledgement. `output.rs` selects the next segment, `timers.rs` handles timers.

mod congestion;
mod flight;
mod input;
mod options;
mod output;
mod ranges;
mod receive;
mod recovery;
mod ring;
mod rtt;
mod seq;
mod state;
#[cfg(test)]
mod tests;
mod timers;

pub(crate) use options::TcpOptions;
pub(crate) use state::State;
pub(crate) use timers::Expired;

use crate::frame::TcpHeader;
use crate::spec::CongestionControl;
use congestion::Congestion;
use flight::Flight;
use nicety_types::{Duration, Time};
use options::STAMPS;
use output::SendReasons;
use receive::{Receiver, scale_for};
use recovery::Recovery;
use ring::Ring;
use rtt::Rtt;
use seq::Numbering;
use timers::Timers;

/// The minimum segment size (MSS) accepted from a peer, in bytes: the payload that fits into IPv4's minimum MTU.
const LEAST_SEGMENT: usize = 28;

/// The parameters of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub send: usize,
    pub receive: usize,
    pub nodelay: bool,
    /// Payload bytes that fit into a frame without TCP options, and the segment size of a peer that sends no MSS
    /// option.
    pub segment: usize,
    pub default_segment: usize,
    /// Bytes of TCP options that fit into a frame.
    pub options: usize,
    /// Maximum payload bytes of a packet that the card segments, without TCP options.
    pub burst: Option<usize>,
    pub timestamps: bool,
    pub sack: bool,
    pub loss_probe: bool,
    pub delayed_ack: Option<Duration>,
    pub ack_segments: u8,
    pub initial_rto: Duration,
    pub min_rto: Duration,
    pub max_rto: Duration,
    pub time_wait: Duration,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub initial_window: usize,
    pub congestion: CongestionControl,
}

/// Acknowledgements to send.
#[derive(Clone, Copy, Debug, Default)]
struct Acks {
    /// Whether an acknowledgement is due now. Any outgoing segment can carry it.
    now: bool,
    /// Number of separate acknowledgements due, one per out-of-order segment.
    owed: u8,
    /// The due time of a delayed acknowledgement.
    at: Option<Time>,
    /// `more` is the number of segments beyond the minimum for which an acknowledgement waits. `fewer` is subtracted
    /// from its maximum.
    more: u8,
    fewer: u8,
    /// Number of further segments to acknowledge without delay, after an out-of-order segment.
    quick: u8,
    /// The last acknowledged position.
    sent: i64,
    /// The time of the last reply to an invalid segment.
    challenged: Option<Time>,
}

/// Events that a stack counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub recoveries: u64,
    pub timeouts: u64,
}

/// A connection's state: RFC 9293's transmission control block.
#[derive(Debug)]
pub(crate) struct Tcb {
    setup: Setup,
    state: State,
    nodelay: bool,
    numbering: Numbering,
    ring: Ring,
    /// The first unacknowledged position (SND.UNA), the first unsent position (SND.NXT), and the end of the written bytes.
    una: i64,
    next: i64,
    end: i64,
    /// Whether a FIN follows the written bytes.
    fin: bool,
    /// The position after the byte that was sent as a probe of a closed window. The peer may have accepted this byte.
    probed: i64,
    /// The peer's window, its maximum so far, and the sequence and acknowledgement position of the segment that last
    /// updated it.
    window: i64,
    most_window: i64,
    updated: (i64, i64),
    peer_scale: u8,
    /// Payload bytes of a full segment, and of the largest packet passed to the card.
    segment: usize,
    burst: usize,
    flight: Flight,
    rtt: Rtt,
    congestion: Congestion,
    recovery: Recovery,
    receiver: Receiver,
    acks: Acks,
    sack: bool,
    /// The last time stamp of the peer, if both ends send time stamps.
    recent_stamp: Option<u32>,
    timers: Timers,
    due: SendReasons,
    /// The send time of the SYN, and whether it was retransmitted.
    syn_sent: Option<Time>,
    syn_again: bool,
    last_sent: Time,
    counts: Counts,
}

impl Tcb {
    fn new(setup: Setup, first: u32, state: State) -> Tcb {
        Tcb {
            state,
            nodelay: setup.nodelay,
            numbering: Numbering::from(first),
            ring: Ring::new(setup.send),
            una: 0,
            next: 0,
            end: 1,
            fin: false,
            probed: 0,
            window: 0,
            most_window: 0,
            updated: (0, 0),
            peer_scale: 0,
            segment: setup.segment,
            burst: setup.segment,
            flight: Flight::default(),
            rtt: Rtt::new(setup.initial_rto, setup.min_rto, setup.max_rto),
            congestion: Congestion::new(setup.congestion, setup.segment, setup.initial_window),
            recovery: Recovery::default(),
            receiver: Receiver::new(0, setup.receive),
            acks: Acks::default(),
            sack: setup.sack,
            recent_stamp: setup.timestamps.then_some(0),
            timers: Timers::default(),
            due: SendReasons { syn: true, ..SendReasons::default() },
            syn_sent: None,
            syn_again: false,
            last_sent: Time::ZERO,
            counts: Counts::default(),
            setup,
        }
    }

    /// Begins a connection with a SYN that has the sequence number `first`.
    pub fn connect(now: Time, setup: Setup, first: u32) -> Tcb {
        let mut tcb = Tcb::new(setup, first, State::SynSent);
        tcb.after(now);
        tcb
    }

    /// Answers a SYN that began a connection.
    pub fn accept(now: Time, setup: Setup, first: u32, tcp: &TcpHeader, options: &TcpOptions) -> Tcb {
        let mut tcb = Tcb::new(setup, first, State::SynReceived);
        tcb.meet(tcp, options);
        tcb.after(now);
        tcb
    }

    /// Takes the peer's initial sequence number and its options from the SYN.
    fn meet(&mut self, tcp: &TcpHeader, options: &TcpOptions) {
        self.receiver = Receiver::new(tcp.seq, self.setup.receive);
        self.acks.sent = 0;
        self.sack &= options.sack_permitted;
        self.recent_stamp = self.recent_stamp.and(options.stamps).map(|(stamp, _)| stamp);
        if let Some(scale) = options.scale {
            self.peer_scale = scale;
            self.receiver.set_scale(scale_for(self.setup.receive));
        }
        let stamps = if self.recent_stamp.is_some() { STAMPS } else { 0 };
        let peers = options.segment.map_or(self.setup.default_segment, usize::from).max(LEAST_SEGMENT);
        self.segment = self.setup.segment.min(peers) - stamps;
        self.burst = match self.setup.burst {
            Some(most) => ((most - stamps) / self.segment * self.segment).max(self.segment),
            None => self.segment,
        };
        // The window of a SYN is not scaled.
        (self.window, self.most_window) = (i64::from(tcp.window), i64::from(tcp.window));
    }

    /// Establishes the connection: the peer has acknowledged this end's SYN, and the peer's SYN has arrived.
    fn establish(&mut self, now: Time) {
        self.state = if self.fin { State::FinWait1 } else { State::Established };
        (self.una, self.due.syn, self.timers.retransmit) = (1, false, None);
        let mut initial = self.setup.initial_window;
        if self.syn_again {
            self.rtt.after_lost_syn(self.setup.initial_rto);
            // RFC 5681, 3.1.
            initial = 1;
        } else if let Some(sent) = self.syn_sent {
            self.rtt.measured(now.saturating_since(sent));
        }
        self.congestion = Congestion::new(self.setup.congestion, self.segment, initial);
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the connection has ended, and the peer needs no further segment.
    pub fn is_gone(&self) -> bool {
        self.state == State::Closed && !self.due.reset
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub fn has_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether this end has closed.
    pub fn is_shut(&self) -> bool {
        self.fin
    }

    pub fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// Bytes that the peer has not acknowledged.
    pub fn queued(&self) -> usize {
        (self.end - self.una.max(1)).max(0) as usize
    }

    /// Bytes that can be written now.
    pub fn writable(&self) -> usize {
        let may = matches!(self.state, State::Established | State::CloseWait) && !self.fin;
        if may { self.ring.capacity() - self.queued() } else { 0 }
    }

    /// Whether a sequence number is higher than all numbers that the peer has used.
    pub fn is_beyond(&self, number: u32) -> bool {
        let next = self.receiver.next();
        self.receiver.numbering.position(number, next) >= next
    }

    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
    }

    /// Appends the bytes that fit into the send buffer. Returns their number.
    pub fn send(&mut self, now: Time, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.writable());
        if length > 0 {
            if self.queued() == 0 {
                self.ring.restart(self.end);
            }
            self.ring.write(self.end, &bytes[..length]);
            self.end += length as i64;
            self.after(now);
        }
        length
    }

    /// Takes received bytes in order. Returns their number.
    pub fn recv(&mut self, now: Time, bytes: &mut [u8]) -> usize {
        let length = self.receiver.read(bytes);
        if length > 0 && self.state.is_synchronized() && !self.has_finished() {
            self.acks.now |= self.receiver.wants_update(self.segment);
            self.after(now);
        }
        length
    }

    /// Returns `length` written bytes from position `start`, in two parts.
    pub fn payload(&self, start: i64, length: usize) -> (&[u8], &[u8]) {
        self.ring.parts(start, length)
    }

    /// Closes the sending direction after the written bytes.
    pub fn shut(&mut self, now: Time) {
        if self.state == State::SynSent {
            self.forget();
        }
        if !self.fin {
            self.fin = true;
            self.state = self.state.shut();
            self.after(now);
        }
    }

    /// Ends the connection. Sends a reset unless the SYN was not answered or both ends have closed.
    pub fn abort(&mut self) {
        let tell = !matches!(self.state, State::SynSent | State::Closed) && !self.state.is_ending();
        self.forget();
        self.due.reset = tell;
    }

    /// Ends the connection without a segment to the peer.
    pub fn forget(&mut self) {
        self.state = State::Closed;
        self.timers = Timers::default();
        self.due = SendReasons::default();
        self.acks = Acks { sent: self.acks.sent, ..Acks::default() };
        self.ring.clear();
    }

    /// Frees the buffers. The caller guarantees that no program holds the connection, and that all bytes were
    /// delivered.
    pub fn release(&mut self) {
        self.ring.clear();
        self.receiver.clear();
    }

    /// Returns the counts since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}
