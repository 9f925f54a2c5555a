//! Figures of traffic, counted while it comes: their memory does not grow with packets.

use super::row::{Fates, HandlerRow, KINDS, Measured, held};
use nicety::{Duration, Time};
use nicety_nic::spin::Watch;
use nicety_types::{HandlerRun, Histogram, MessageId, NodeId};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Traffic, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TrafficFigures")]
pub struct TrafficRow {
    /// The expression.
    pub traffic: String,
    /// What happens when the packet buffer is full: `credits`, the sender waits for them; `lossy`, packets are dropped; or
    /// `pfc`, the wire is paused.
    pub overload: &'static str,
    /// Packets offered to the wire.
    pub offered: u64,
    /// Their payload: bytes of frames.
    pub offered_bytes: u64,
    /// How long they take on a wire that nothing holds up.
    pub offered_ns: f64,
    /// Packets that the card took in: all but those dropped by overload.
    pub handled: u64,
    /// Of these, packets that no handler dropped: processed, or on their way to host memory.
    pub passed: u64,
    /// Packets that handlers dropped.
    pub dropped_by_handler: u64,
    /// Packets on which a handler failed.
    pub failed: u64,
    /// Packets that found the packet buffer full, and were dropped.
    pub dropped_by_overload: u64,
    /// Frames that handlers passed on to the host, and that found no buffer there.
    pub dropped_at_host: u64,
    /// How long the wire was paused.
    pub paused_ns: f64,
    /// The latency through the card, from the last byte in the packet buffer until the packet has left it: the mean.
    pub latency_ns_mean: f64,
    /// The median, by nearest rank, and at most 0.2 % above it; likewise the following.
    pub latency_ns_p50: f64,
    /// The 99th percentile.
    pub latency_ns_p99: f64,
    /// The 99.9th percentile.
    pub latency_ns_p999: f64,
    /// The maximum, exactly.
    pub latency_ns_max: f64,
}

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
    fn add(&mut self, run: &HandlerRun) {
        self.cycles.add(run.cycles);
        self.instructions.add(run.instructions);
        self.time.add(held(&run).ps());
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

/// The fate of a packet as its handlers decide it.
#[derive(Clone, Copy)]
enum Fate {
    Processed,
    Dropped,
    Proceeded,
    Failed,
}

/// A packet in the packet buffer.
#[derive(Clone, Copy)]
struct Packet {
    arrived: Time,
    fate: Option<Fate>,
}

#[derive(Default)]
struct State {
    /// Packets in the buffer by their number, from `first` on; none for those that have left or were dropped on the way.
    packets: VecDeque<Option<Packet>>,
    first: u64,
    inside: u64,
    most_inside: u64,
    runs: [Runs; 3],
    parked: bool,
    fates: Fates,
    latency: Histogram,
    began: Option<Time>,
    ended: Time,
}

/// Watches the card.
pub(super) struct Meter {
    state: RefCell<State>,
    /// The fate of packets that no handler decides.
    payload_handler: bool,
}

/// The sender of the traffic.
const SENDER: NodeId = NodeId(0);

impl Meter {
    pub(super) fn new(payload_handler: bool) -> Meter {
        Meter { state: RefCell::default(), payload_handler }
    }

    /// The figures, if a packet has come; a slot is taken for so long beside its packet's stay, on the way there and back.
    pub(super) fn measured(&self, beside: Duration, held_up: bool) -> Option<Measured> {
        let state = self.state.borrow();
        let took = state.ended.saturating_since(state.began?);
        let sum = |histogram: &Histogram| Duration::from_ps(histogram.sum() as u64);
        let held = state.runs.iter().map(|runs| sum(&runs.time)).sum();
        let handlers = state.runs.iter().zip(KINDS).filter(|(runs, _)| runs.cycles.count() > 0);
        Some(Measured {
            handlers: handlers.map(|(runs, kind)| runs.row(kind)).collect(),
            held,
            parked: state.parked,
            fates: state.fates,
            took,
            at_work: held,
            held_up,
            buffer_used: state.most_inside,
            places: sum(&state.latency) + Duration::from_ps(beside.ps() * state.latency.count()),
        })
    }

    /// Packets that have left the card, and their latencies put into a row.
    pub(super) fn fill(&self, row: &mut TrafficRow) {
        let state = self.state.borrow();
        let Fates { processed, dropped, proceeded, failed } = state.fates;
        row.handled = processed + dropped + proceeded + failed;
        (row.passed, row.dropped_by_handler, row.failed) = (processed + proceeded, dropped, failed);
        let ns = |per_mille| state.latency.percentile(per_mille) as f64 / 1000.0;
        row.latency_ns_mean = state.latency.mean() / 1000.0;
        (row.latency_ns_p50, row.latency_ns_p99, row.latency_ns_p999) = (ns(500), ns(990), ns(999));
        row.latency_ns_max = state.latency.max() as f64 / 1000.0;
    }
}

impl State {
    fn place(&mut self, message: MessageId) -> Option<&mut Option<Packet>> {
        let at = message.sequence.checked_sub(self.first)?;
        self.packets.get_mut(at as usize)
    }
}

impl Watch for Meter {
    fn arrived(&self, message: MessageId, at: Time) {
        if message.source != SENDER {
            return;
        }
        let state = &mut *self.state.borrow_mut();
        if state.packets.is_empty() {
            state.first = message.sequence;
        }
        // Packets come in the order in which they were sent; one in between was dropped.
        let number = (message.sequence - state.first) as usize;
        state.packets.resize(number, None);
        state.packets.push_back(Some(Packet { arrived: at, fate: None }));
        state.began.get_or_insert(at);
        state.inside += 1;
        state.most_inside = state.most_inside.max(state.inside);
    }

    fn settled(&self, message: MessageId, at: Time) {
        if message.source != SENDER {
            return;
        }
        let state = &mut *self.state.borrow_mut();
        let Some(packet) = state.place(message).and_then(Option::take) else { return };
        state.latency.add(at.saturating_since(packet.arrived).ps());
        state.inside -= 1;
        state.ended = state.ended.max(at);
        let usual = if self.payload_handler { Fate::Failed } else { Fate::Proceeded };
        *match packet.fate.unwrap_or(usual) {
            Fate::Processed => &mut state.fates.processed,
            Fate::Dropped => &mut state.fates.dropped,
            Fate::Proceeded => &mut state.fates.proceeded,
            Fate::Failed => &mut state.fates.failed,
        } += 1;
        while let Some(None) = state.packets.front() {
            state.packets.pop_front();
            state.first += 1;
        }
    }

    fn ran(&self, run: &HandlerRun) {
        if run.message.source != SENDER {
            return;
        }
        let Some(kind) = KINDS.iter().position(|kind| *kind == run.kind) else { return };
        let state = &mut *self.state.borrow_mut();
        state.runs[kind].add(run);
        state.parked |= !run.parked.is_zero();
        let fate = match (kind, run.outcome) {
            (_, outcome) if outcome.starts_with("DROP") => Some(Fate::Dropped),
            (0, outcome) if outcome.starts_with("PROCEED") => Some(Fate::Proceeded),
            (0, outcome) if outcome.starts_with("PROCESS_DATA") => None,
            (1, "HOST" | "QUEUE") => Some(Fate::Proceeded),
            (1, "WIRE") => Some(Fate::Processed),
            (1, outcome) if outcome.starts_with("SUCCESS") => Some(Fate::Processed),
            (2, _) => return,
            _ => Some(Fate::Failed),
        };
        if let Some(Some(packet)) = state.place(run.message) {
            packet.fate = fate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> MessageId {
        MessageId { source: SENDER, sequence }
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
        let meter = Meter::new(true);
        let at = Time::from_ps;
        // Every fifth packet is dropped on the way.
        for round in 0..2_000u64 {
            let time = round * 1_000;
            let first = 3 + round * 5;
            for number in 0..4 {
                meter.arrived(message(first + number), at(time + number));
            }
            meter.ran(&run("payload", first, "SUCCESS"));
            meter.ran(&run("header", first + 1, "DROP"));
            meter.ran(&run("header", first + 2, "PROCEED"));
            meter.ran(&run("header", first + 3, "PROCESS_DATA"));
            meter.ran(&run("payload", first + 3, "FAIL"));
            // Not in their order.
            for number in [2, 0, 3, 1] {
                meter.settled(message(first + number), at(time + 100 + number));
            }
            assert!(meter.state.borrow().packets.len() <= 5);
        }
        let measured = meter.measured(Duration::from_ps(10), false).unwrap();
        let Fates { processed, dropped, proceeded, failed } = measured.fates;
        assert_eq!((processed, dropped, proceeded, failed), (2_000, 2_000, 2_000, 2_000));
        assert_eq!(measured.buffer_used, 4);
        assert_eq!(measured.took, Duration::from_ps(1_999 * 1_000 + 103));
        assert_eq!(measured.places, Duration::from_ps(8_000 * 110));
        assert_eq!(measured.held, Duration::from_ps(10_000 * 100));
        let names: Vec<(&str, u64)> = measured.handlers.iter().map(|row| (row.handler, row.runs)).collect();
        assert_eq!(names, [("header", 6_000), ("payload", 4_000)]);
        let mut row = TrafficRow::default();
        meter.fill(&mut row);
        assert_eq!(
            (row.handled, row.passed, row.dropped_by_handler, row.failed),
            (8_000, 4_000, 2_000, 2_000)
        );
        assert_eq!((row.latency_ns_p50, row.latency_ns_max), (0.1, 0.1));
    }
}
