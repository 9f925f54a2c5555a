//! Figures of traffic, counted as it arrives: their memory does not grow with packets.

use super::growth::Series;
use super::limit::Lost;
use super::measured::{KINDS, Measured, held};
use super::row::{Dispositions, HandlerRow, PortRow, TrafficRow};
use nicety::{Duration, Time};
use nicety_nic_processors::Watch;
use nicety_types::{Frequency, HandlerRun, Histogram, MessageId, NodeId};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Runs of one handler.
#[derive(Default)]
struct Runs {
    cycles: Histogram,
    instructions: Histogram,
    time: Histogram,
    queued: Histogram,
    returned: BTreeMap<&'static str, u64>,
}

impl Runs {
    fn add(&mut self, run: &HandlerRun, clock: Frequency) {
        self.cycles.add(run.cycles);
        self.instructions.add(run.instructions);
        self.time.add(held(run, clock).ps());
        self.queued.add(run.start.saturating_since(run.ready).ps());
        *self.returned.entry(run.outcome).or_default() += 1;
    }

    fn row(&self, handler: &'static str) -> HandlerRow {
        HandlerRow {
            handler,
            runs: self.cycles.count(),
            cycles_mean: self.cycles.mean(),
            cycles_p99: self.cycles.percentile(990),
            cycles_max: self.cycles.max(),
            instructions_mean: self.instructions.mean(),
            instructions_p99: self.instructions.percentile(990),
            instructions_max: self.instructions.max(),
            time_ns_mean: self.time.mean() / 1000.0,
            time_ns_p99: self.time.percentile(990) as f64 / 1000.0,
            queued_ns_mean: self.queued.mean() / 1000.0,
            returned: self.returned.clone(),
        }
    }
}

/// The disposition of a packet, decided by its handlers.
#[derive(Clone, Copy)]
enum Disposition {
    Processed,
    Dropped,
    Proceeded,
    Failed,
}

/// A packet in the packet buffer.
#[derive(Clone, Copy)]
struct Packet {
    arrived: Time,
    bytes: u64,
    disposition: Option<Disposition>,
    /// The time of its handlers on processors.
    cost: Duration,
}

/// The place of a packet in the order of arrival.
#[derive(Clone, Copy)]
enum Place {
    /// It was dropped before the card.
    Dropped,
    Inside(Packet),
    /// It has left, after this time in the card, and after earlier ones which are still inside.
    Left {
        stayed: Duration,
        cost: Duration,
    },
}

/// The packets of one port.
#[derive(Default)]
struct Port {
    /// Packets by their number, from `first` on.
    packets: VecDeque<Place>,
    first: u64,
    dispositions: Dispositions,
    /// Payload of packets that have left.
    bytes: u64,
    latency: Histogram,
}

#[derive(Default)]
struct State {
    ports: Vec<Port>,
    inside: u64,
    most_inside: u64,
    /// Times of packets in the card, and their handlers' times on processors.
    stays: Series,
    costs: Series,
    runs: [Runs; 3],
    parked: bool,
    began: Option<Time>,
    /// The last arrival.
    came: Time,
    ended: Time,
    later: Later,
}

/// Packets behind a burst: the occupancy in the later half, and departures, of a known number of packets.
#[derive(Default)]
struct Later {
    /// Packets in all; 0 if unknown.
    expected: u64,
    arrivals: u64,
    left: u64,
    /// Minimum packets in the card at the arrival of one of them.
    least_inside: Option<u64>,
    /// Times between departures, except those in processors at the end.
    intervals: Series,
    last_at: Option<Time>,
}

impl Later {
    /// Inverse of the fraction of packets that are excluded at the end, when processors still have them.
    const END: u64 = 32;

    fn count_arrival(&mut self, inside: u64) {
        self.arrivals += 1;
        if 2 * self.arrivals > self.expected && self.expected > 0 {
            self.least_inside = Some(self.least_inside.map_or(inside, |least| least.min(inside)));
        }
    }

    fn left(&mut self, at: Time) {
        self.left += 1;
        if self.left > self.last() {
            return;
        }
        if let Some(before) = self.last_at.replace(at) {
            self.intervals.add(at.saturating_since(before));
            self.intervals.done();
        }
    }

    const fn last(&self) -> u64 {
        self.expected - self.expected / Self::END
    }
}

/// An observer of the card.
pub(super) struct Meter {
    state: RefCell<State>,
    /// Whether there is a payload handler: then a packet without a decision has failed, otherwise it has proceeded.
    payload_handler: bool,
    /// The processors' clock.
    clock: Frequency,
}

/// The node of the observed card.
pub(super) const CARD: NodeId = NodeId(1);

/// Returns the sender of a port's traffic. Senders are the nodes beside the card, in order.
pub(super) const fn sender(port: u32) -> NodeId {
    NodeId(if port < CARD.0 { port } else { port + 1 })
}

impl Meter {
    pub(super) fn new(ports: usize, payload_handler: bool, clock: Frequency) -> Meter {
        let state = State { ports: (0..ports).map(|_| Port::default()).collect(), ..State::default() };
        Meter { state: RefCell::new(state), payload_handler, clock }
    }

    /// Sets the number of expected packets.
    pub(super) fn expects(&self, packets: u64) {
        self.state.borrow_mut().later.expected = packets;
    }

    /// Minimum packets in the card at the arrival of one of the later half.
    pub(super) fn least_inside(&self) -> Option<u64> {
        self.state.borrow().later.least_inside
    }

    /// The longest stay of a packet in the card, in picoseconds.
    pub(super) fn longest_stay_ps(&self) -> u64 {
        self.state.borrow().latency().max()
    }

    /// Mean time between departures, in picoseconds: of all packets, or of the later half if it differs by more than chance.
    pub(super) fn left_every(&self) -> Option<f64> {
        self.state.borrow().later.intervals.steady_ps()
    }

    /// Returns the figures, if a packet has arrived. `beside` is the time of a slot in addition to its packet's stay, in both
    /// directions.
    pub(super) fn measured(&self, beside: Duration, lost: Lost) -> Option<Measured> {
        let state = self.state.borrow();
        let took = state.ended.saturating_since(state.began?);
        let sum = |histogram: &Histogram| Duration::from_ps(histogram.sum() as u64);
        // Rounded up once, on the sum: each run ends at a clock edge.
        let held = self.clock.cycles(state.runs.iter().map(|runs| runs.cycles.sum() as u64).sum());
        let latency = state.latency();
        let handlers = state.runs.iter().zip(KINDS).filter(|(runs, _)| runs.cycles.count() > 0);
        Some(Measured {
            handlers: handlers.map(|(runs, kind)| runs.row(kind)).collect(),
            held,
            growth: state.costs.growth(),
            parked: state.parked,
            dispositions: state.dispositions(),
            packets: latency.count(),
            bytes: state.bytes(),
            took,
            came: state.came.saturating_since(state.began?),
            at_work: held,
            stalled: lost.stalled,
            lost: Some(Lost { parked: state.parked, piled_up: state.stays.goes_on(), ..lost }),
            buffer_used: state.most_inside,
            places: sum(&latency) + Duration::from_ps(beside.ps() * latency.count()),
        })
    }

    /// Puts the packets that have left the card, and their latencies, into a row.
    pub(super) fn fill(&self, row: &mut TrafficRow) {
        let state = self.state.borrow();
        let all = figures(state.dispositions(), state.bytes(), &state.latency());
        (row.handled, row.handled_bytes, row.passed) = (all.handled, all.handled_bytes, all.passed);
        (row.dropped_by_handler, row.failed) = (all.dropped_by_handler, all.failed);
        row.latency_ns_mean = all.latency_ns_mean;
        (row.latency_ns_p50, row.latency_ns_p99, row.latency_ns_p999) =
            (all.latency_ns_p50, all.latency_ns_p99, all.latency_ns_p999);
        row.latency_ns_max = all.latency_ns_max;
    }

    /// Returns the figures of a port.
    pub(super) fn port(&self, number: usize) -> PortRow {
        let port = &self.state.borrow().ports[number];
        figures(port.dispositions, port.bytes, &port.latency)
    }
}

/// Returns the figures of packets with these dispositions, payload and latencies.
fn figures(dispositions: Dispositions, handled_bytes: u64, latency: &Histogram) -> PortRow {
    let Dispositions { processed, dropped, proceeded, failed } = dispositions;
    let ns = |per_mille| latency.percentile(per_mille) as f64 / 1000.0;
    PortRow {
        handled: processed + dropped + proceeded + failed,
        handled_bytes,
        passed: processed + proceeded,
        dropped_by_handler: dropped,
        failed,
        latency_ns_mean: latency.mean() / 1000.0,
        latency_ns_p50: ns(500),
        latency_ns_p99: ns(990),
        latency_ns_p999: ns(999),
        latency_ns_max: latency.max() as f64 / 1000.0,
        ..PortRow::default()
    }
}

impl State {
    /// Returns the port that a node sends to; none for the card itself.
    fn port(&mut self, source: NodeId) -> Option<&mut Port> {
        let number = match source {
            CARD => return None,
            NodeId(node) => node - u32::from(node > CARD.0),
        };
        self.ports.get_mut(number as usize)
    }

    fn dispositions(&self) -> Dispositions {
        self.ports.iter().fold(Dispositions::default(), |all, port| all + port.dispositions)
    }

    fn bytes(&self) -> u64 {
        self.ports.iter().map(|port| port.bytes).sum()
    }

    fn latency(&self) -> Histogram {
        let mut all = Histogram::default();
        self.ports.iter().for_each(|port| all.merge(&port.latency));
        all
    }
}

impl Port {
    /// Returns a packet in the card.
    fn packet(&mut self, message: MessageId) -> Option<&mut Packet> {
        let at = message.sequence.checked_sub(self.first)?;
        match self.packets.get_mut(at as usize)? {
            Place::Inside(packet) => Some(packet),
            Place::Dropped | Place::Left { .. } => None,
        }
    }

    /// Counts a packet that leaves the card, and marks its place. Returns whether the card had it.
    fn leaves(&mut self, message: MessageId, at: Time, usual: Disposition) -> bool {
        let Some(&mut Packet { arrived, bytes, disposition, cost }) = self.packet(message) else {
            return false;
        };
        let stayed = at.saturating_since(arrived);
        self.packets[(message.sequence - self.first) as usize] = Place::Left { stayed, cost };
        self.bytes += bytes;
        self.latency.add(stayed.ps());
        *match disposition.unwrap_or(usual) {
            Disposition::Processed => &mut self.dispositions.processed,
            Disposition::Dropped => &mut self.dispositions.dropped,
            Disposition::Proceeded => &mut self.dispositions.proceeded,
            Disposition::Failed => &mut self.dispositions.failed,
        } += 1;
        true
    }

    /// Takes the stay and the cost of the next packet in order of arrival, if it has left.
    fn next_left(&mut self) -> Option<(Duration, Duration)> {
        while !matches!(self.packets.front(), None | Some(Place::Inside(_))) {
            self.first += 1;
            if let Some(Place::Left { stayed, cost }) = self.packets.pop_front() {
                return Some((stayed, cost));
            }
        }
        None
    }
}

impl Watch for Meter {
    fn arrived(&self, message: MessageId, bytes: u64, at: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(port) = state.port(message.source) else { return };
        if port.packets.is_empty() {
            port.first = message.sequence;
        }
        // Packets arrive in the order of sending. A missing one was dropped.
        let number = (message.sequence - port.first) as usize;
        port.packets.resize(number, Place::Dropped);
        let packet = Packet { arrived: at, bytes, disposition: None, cost: Duration::ZERO };
        port.packets.push_back(Place::Inside(packet));
        state.began.get_or_insert(at);
        state.came = at;
        state.later.count_arrival(state.inside);
        state.inside += 1;
        state.most_inside = state.most_inside.max(state.inside);
    }

    fn settled(&self, message: MessageId, at: Time) {
        let state = &mut *self.state.borrow_mut();
        let Some(port) = state.port(message.source) else { return };
        let usual = if self.payload_handler { Disposition::Failed } else { Disposition::Proceeded };
        if !port.leaves(message, at, usual) {
            return;
        }
        while let Some((stayed, cost)) = state.port(message.source).and_then(Port::next_left) {
            state.stays.add(stayed);
            state.stays.done();
            state.costs.add(cost);
            state.costs.done();
        }
        state.inside -= 1;
        state.later.left(at);
        state.ended = state.ended.max(at);
    }

    fn ran(&self, run: &HandlerRun) {
        let Some(kind) = KINDS.iter().position(|kind| *kind == run.kind) else { return };
        let state = &mut *self.state.borrow_mut();
        if state.port(run.message.source).is_none() {
            return;
        }
        state.runs[kind].add(run, self.clock);
        state.parked |= !run.parked.is_zero();
        let Some(packet) = state.port(run.message.source).and_then(|port| port.packet(run.message)) else {
            return state.costs.add(held(run, self.clock));
        };
        packet.cost += held(run, self.clock);
        packet.disposition = match (kind, run.outcome) {
            (_, outcome) if outcome.starts_with("DROP") => Some(Disposition::Dropped),
            (0, outcome) if outcome.starts_with("PROCEED") => Some(Disposition::Proceeded),
            (0, outcome) if outcome.starts_with("PROCESS_DATA") => None,
            (1, "HOST" | "QUEUE") => Some(Disposition::Proceeded),
            (1, "WIRE") => Some(Disposition::Processed),
            (1, outcome) if outcome.starts_with("SUCCESS") => Some(Disposition::Processed),
            (2, _) => packet.disposition,
            _ => Some(Disposition::Failed),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> MessageId {
        MessageId { source: sender(0), sequence }
    }

    fn run(kind: &'static str, sequence: u64, outcome: &'static str) -> HandlerRun {
        HandlerRun {
            hpu: 0,
            kind,
            message: message(sequence),
            offset: Some(0),
            ready: Time::from_ps(10),
            start: Time::from_ps(20),
            end: Time::from_ps(120),
            parked: Duration::ZERO,
            cycles: 7,
            instructions: 5,
            outcome,
        }
    }

    #[test]
    fn each_packet_has_a_fate_and_a_latency_in_flat_memory() {
        let meter = Meter::new(1, true, Frequency::from_hz(10_000_000_000));
        let at = Time::from_ps;
        // Every fifth packet is dropped before the card.
        for round in 0..2_000u64 {
            let time = round * 1_000;
            let first = 3 + round * 5;
            for number in 0..4 {
                meter.arrived(message(first + number), 60 + number, at(time + number));
            }
            meter.ran(&run("payload", first, "SUCCESS"));
            meter.ran(&run("header", first + 1, "DROP"));
            meter.ran(&run("header", first + 2, "PROCEED"));
            meter.ran(&run("header", first + 3, "PROCESS_DATA"));
            meter.ran(&run("payload", first + 3, "FAIL"));
            // Not in order.
            for number in [2, 0, 3, 1] {
                meter.settled(message(first + number), at(time + 100 + number));
            }
            assert!(meter.state.borrow().ports[0].packets.len() <= 5);
        }
        let measured = meter.measured(Duration::from_ps(10), Lost::default()).unwrap();
        let Dispositions { processed, dropped, proceeded, failed } = measured.dispositions;
        assert_eq!((processed, dropped, proceeded, failed), (2_000, 2_000, 2_000, 2_000));
        assert_eq!(measured.buffer_used, 4);
        assert_eq!(measured.took, Duration::from_ps(1_999 * 1_000 + 103));
        assert_eq!(measured.places, Duration::from_ps(8_000 * 110));
        assert_eq!(measured.held, Duration::from_ps(10_000 * 700));
        let names: Vec<(&str, u64)> = measured.handlers.iter().map(|row| (row.handler, row.runs)).collect();
        assert_eq!(names, [("header", 6_000), ("payload", 4_000)]);
        let mut row = TrafficRow::default();
        meter.fill(&mut row);
        assert_eq!(
            (row.handled, row.passed, row.dropped_by_handler, row.failed),
            (8_000, 4_000, 2_000, 2_000)
        );
        // Frames of 60 to 63 bytes.
        assert_eq!((row.handled_bytes, measured.packets, measured.bytes), (2_000 * 246, 8_000, 2_000 * 246));
        assert_eq!((row.latency_ns_p50, row.latency_ns_max), (0.1, 0.1));
    }

    #[test]
    fn packets_that_leave_late_count_in_the_order_in_which_they_came() {
        // Every eighth packet takes 40 times as long. The longest of the last packets leave behind all others.
        let meter = Meter::new(1, true, Frequency::from_hz(1_000_000_000));
        let mut leaves: Vec<(u64, u64)> = (0..64)
            .map(|number| (100 * number + if number % 8 == 4 { 40_000 } else { 1_000 }, number))
            .collect();
        for number in 0..64 {
            meter.arrived(message(number), 60, Time::from_ps(100 * number));
            meter.ran(&HandlerRun {
                cycles: if number % 8 == 4 { 40 } else { 1 },
                ..run("payload", number, "SUCCESS")
            });
        }
        leaves.sort_unstable();
        for (at, number) in leaves {
            meter.settled(message(number), Time::from_ps(at));
        }
        let measured = meter.measured(Duration::ZERO, Lost::default()).unwrap();
        assert_eq!((measured.growth, measured.packets), (None, 64));
        assert!(!measured.lost.unwrap().piled_up);
        assert!(meter.state.borrow().ports[0].packets.is_empty());
    }

    #[test]
    fn the_time_of_all_runs_is_rounded_up_once() {
        // A cycle takes a third of a nanosecond.
        let meter = Meter::new(1, true, Frequency::from_hz(3_000_000_000));
        for number in 0..3 {
            meter.arrived(message(number), 60, Time::from_ps(number));
            meter.ran(&HandlerRun { cycles: 23, ..run("payload", number, "SUCCESS") });
            meter.settled(message(number), Time::from_ps(9_000 + number));
        }
        let measured = meter.measured(Duration::ZERO, Lost::default()).unwrap();
        assert_eq!(measured.held, Duration::from_ps(23_000));
    }

    #[test]
    fn packets_of_the_later_half_say_how_fast_they_leave_and_whether_any_wait() {
        let of = |packets: u64, last: &dyn Fn(u64) -> u64| {
            let meter = Meter::new(1, true, Frequency::from_hz(1_000_000_000));
            assert_eq!((meter.least_inside(), meter.left_every()), (None, None));
            meter.expects(packets);
            let mut left = 0;
            for number in 0..packets {
                let at = Time::from_ps(1_000 * number);
                while left < number && last(left) <= at.ps() {
                    meter.settled(message(left), Time::from_ps(last(left)));
                    left += 1;
                }
                meter.arrived(message(number), 60, at);
            }
            (left..packets).for_each(|number| meter.settled(message(number), Time::from_ps(last(number))));
            (meter.least_inside().unwrap(), meter.left_every().unwrap().round() as u64)
        };
        // One every 1000 ps: each leaves before the next. One every 1500 ps: a third waits, 267 of 800 at 400 at first.
        assert_eq!(of(800, &|number| 1_000 * number + 700), (0, 1_000));
        assert_eq!(of(800, &|number| 1_500 * number + 700), (133, 1_500));
        // Those in processors at the end do not count.
        assert_eq!(of(64, &|number| 1_500 * number + if number > 61 { 1_000_000 } else { 0 }).1, 1_500);
    }

    #[test]
    fn ports_are_counted_on_their_own_and_together() {
        assert_eq!([0, 1, 2].map(sender), [NodeId(0), NodeId(2), NodeId(3)]);
        let meter = Meter::new(2, true, Frequency::from_hz(10_000_000_000));
        let at = Time::from_ps;
        let of = |port| MessageId { source: sender(port), sequence: 0 };
        meter.arrived(of(0), 60, at(0));
        meter.arrived(of(1), 1500, at(5));
        // Packets that the card or other nodes send do not belong to the traffic.
        for stranger in [CARD, NodeId(3)] {
            meter.arrived(MessageId { source: stranger, sequence: 0 }, 60, at(6));
            meter.settled(MessageId { source: stranger, sequence: 0 }, at(7));
        }
        meter.ran(&HandlerRun { message: of(1), ..run("payload", 0, "DROP") });
        meter.ran(&HandlerRun { message: of(0), ..run("payload", 0, "SUCCESS") });
        meter.settled(of(1), at(505));
        meter.settled(of(0), at(700));
        let ports = [0, 1].map(|port| meter.port(port));
        let counts = ports.each_ref().map(|port| (port.handled, port.passed, port.dropped_by_handler));
        assert_eq!(counts, [(1, 1, 0), (1, 0, 1)]);
        assert_eq!(ports.each_ref().map(|port| port.handled_bytes), [60, 1500]);
        assert_eq!(ports.map(|port| port.latency_ns_max), [0.7, 0.5]);
        let measured = meter.measured(Duration::ZERO, Lost::default()).unwrap();
        assert_eq!(
            (measured.dispositions.processed, measured.dispositions.dropped, measured.buffer_used),
            (1, 1, 2)
        );
        assert_eq!((measured.took, measured.places), (Duration::from_ps(700), Duration::from_ps(1_200)));
        let mut row = TrafficRow::default();
        meter.fill(&mut row);
        assert_eq!((row.handled, row.latency_ns_p50, row.latency_ns_max), (2, 0.5, 0.7));
    }
}
