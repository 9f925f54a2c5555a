//! Observations of a run, and its row.

use super::demand::Demand;
use super::growth::{GrowthRow, Series};
use super::limit::{CLOSE, Lost, Observations, is_stalled, limit, limit_of_contexts, limit_of_traffic};
use super::load::Load;
use super::memory::memory_row;
use super::part::Part;
use super::parts::{Named, capacity, parts, verdict, with_contexts};
use super::request::Messages;
use super::row::{Dispositions, HandlerRow, Row};
use nicety::record::Recording;
use nicety::{Duration, Error, Time};
use nicety_bench::nearest_rank;
use nicety_types::{Frequency, HandlerRun, NodeId};
use std::collections::BTreeMap;
use std::ops::Range;

/// The records of the messages measured.
pub(super) struct Measured {
    /// Statistics of the header, payload and completion handlers that ran.
    pub(super) handlers: Vec<HandlerRow>,
    /// Total time for which their runs held processors.
    pub(super) held: Duration,
    /// Growth of that time during the run.
    pub(super) growth: Option<GrowthRow>,
    /// Whether a handler yielded its processor.
    pub(super) parked: bool,
    pub(super) dispositions: Dispositions,
    /// Packets measured, and their payload.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The time from the completion of the last packet before the measurement to that of the last one measured.
    pub(super) took: Duration,
    /// The time between the first and the last arrival of traffic.
    pub(super) came: Duration,
    /// Total busy time of the processors in it.
    pub(super) at_work: Duration,
    pub(super) buffer_used: u64,
    /// Whether the sender was stalled all along by a lack of credits: it sent later than the wire would have allowed.
    pub(super) stalled: bool,
    /// Total time for which the measured packets held slots of the packet buffer, from their departure until the sender has the
    /// credit back.
    pub(super) places: Duration,
    /// Dispositions of traffic that the card could not take; none for equal packets, since none is lost.
    pub(super) lost: Option<Lost>,
}

pub(super) const KINDS: [&str; 3] = ["header", "payload", "completion"];

/// Returns the runs of handlers for these messages of the sender, by kind.
fn runs_of<'r>(recording: &'r Recording, measured: &Range<u64>) -> [Vec<&'r HandlerRun>; 3] {
    let mut runs = [const { Vec::new() }; 3];
    for (node, run) in &recording.handler_runs {
        let own = run.message.source == NodeId(0) && measured.contains(&run.message.sequence);
        if *node == NodeId(1)
            && own
            && let Some(kind) = KINDS.iter().position(|kind| *kind == run.kind)
        {
            runs[kind].push(run);
        }
    }
    runs
}

/// Returns the time of handlers on the card within an interval, without the time in which they were parked.
fn work_between(recording: &Recording, from: Time, until: Time) -> Duration {
    let runs = recording.handler_runs.iter().filter(|(node, _)| *node == NodeId(1));
    runs.map(|(_, run)| run.end.min(until).saturating_since((run.start + run.parked).max(from))).sum()
}

impl Measured {
    pub(super) fn of(load: &Load, recording: &Recording) -> Result<Measured, Error> {
        let messages = load.messages;
        let measured = messages.before..messages.before + messages.measured;
        let runs = runs_of(recording, &measured);
        let dispositions = dispositions(&runs, load.messages, load.payload_handler);
        let packets = recording.packets.iter().filter(|packet| packet.message.source == NodeId(0));
        let places = packets
            .clone()
            .filter(|packet| measured.contains(&packet.message.sequence))
            .filter_map(|packet| Some(packet.settled?.since(packet.sent) + load.credit))
            .sum();
        let mut done: Vec<Time> = packets.clone().filter_map(|packet| packet.settled).collect();
        if (done.len() as u64) < messages.total() * messages.packets_each {
            return Err(Error::Program(format!(
                "only {} of {} packets were finished at the end of the run",
                done.len(),
                messages.total() * messages.packets_each
            )));
        }
        done.sort_unstable();
        let mut sent: Vec<Time> = packets.clone().map(|packet| packet.sent).collect();
        sent.sort_unstable();
        let [first, end] =
            [measured.start, measured.end].map(|messages| (messages * load.messages.packets_each) as usize);
        let stalled =
            is_stalled(&sent[first.saturating_sub(1)..end], Duration::from_ps(load.interval.times(1)));
        let last_of = |messages: u64| done[(messages * load.messages.packets_each) as usize - 1];
        let (from, until) = (last_of(measured.start), last_of(measured.end));
        let took = until.since(from);
        let at_work = work_between(recording, from, until);
        let stays = packets.filter_map(|packet| Some((packet.arrived?, packet.settled?)));
        let handlers = runs.iter().zip(KINDS).filter(|(runs, _)| !runs.is_empty());
        Ok(Measured {
            handlers: handlers.map(|(runs, kind)| handler_row(kind, runs, load.clock)).collect(),
            held: load.clock.cycles(runs.iter().flatten().map(|run| run.cycles).sum()),
            growth: growth(&runs, load.clock),
            parked: runs.iter().flatten().any(|run| !run.parked.is_zero()),
            dispositions,
            packets: messages.measured * messages.packets_each,
            bytes: messages.measured * messages.packets_each * load.packet_bytes,
            took,
            came: Duration::ZERO,
            at_work,
            buffer_used: most_at_once(stays),
            stalled,
            places,
            lost: None,
        })
    }

    /// The senders' rate in the second half of the run, over their intended rate.
    pub(super) fn sent_fraction(&self) -> f64 {
        self.lost.map_or(1.0, |lost| lost.sent_fraction)
    }

    /// Whether packets left as fast as they arrived, and nothing stalled their sender.
    pub(super) fn is_at_rate(&self, load: &Load) -> bool {
        let in_time = load.interval.times(self.packets) as f64 >= CLOSE * self.took.ps() as f64;
        !self.stalled && (in_time || self.keeps_pace(load))
    }

    /// Whether all packets of traffic came through, came at their due times, and none waited for longer and longer. Then `took` exceeds
    /// the traffic's time by the stay of the last packets, which says nothing of a rate.
    fn keeps_pace(&self, load: &Load) -> bool {
        let came_in_time = load.interval.times(self.packets) as f64 >= CLOSE * self.came.ps() as f64;
        came_in_time && self.lost.is_some_and(|lost| lost.dropped == 0 && !lost.stalled && !lost.piled_up)
    }

    /// Returns the row of a run. The demand of its packets is that of the run itself, or of a run without loss.
    pub(super) fn row(&self, load: &Load, lossless: Option<Demand<'_>>) -> Row {
        let Load { packet_bytes, messages, interval, hpus, .. } = *load;
        let own = Demand {
            load,
            held: self.held,
            growth: self.growth,
            packets: self.packets,
            sent_fraction: self.sent_fraction(),
        };
        let demand = lossless.unwrap_or(own);
        let line_rate = 1e12 / interval.ps();
        // The output cannot be faster than the input; the ends of the interval may make it seem so.
        let packets_per_s = match self.keeps_pace(load) {
            true => line_rate,
            false => line_rate.min(1e12 * self.packets as f64 / self.took.ps() as f64),
        };
        let fraction = packets_per_s / line_rate;
        // After losses, `took` says nothing: it depends on how long the last packets take to leave the buffer.
        let through = match self.lost {
            Some(Lost { dropped, .. }) if dropped > 0 => {
                self.packets as f64 / (self.packets + dropped) as f64
            }
            _ => fraction,
        };
        let (loads, handled) = (demand.loads(), own.loads_at_work());
        let parked = self.parked;
        let places = self.places.ps() as f64 / (interval.times(self.packets) * load.buffer_packets) as f64;
        let seen = Observations {
            hpus_busy: self.at_work.ps() as f64 >= CLOSE * (hpus * self.took.ps()) as f64,
            stalled: self.stalled || !parked && places > 1.0,
            // Where handlers yield, the buffer is full because they wait.
            buffer_full: !parked && (places * fraction >= CLOSE || loads.hpus <= 1.0),
            fraction,
        };
        let by_loads = limit(&loads, &handled, demand.misses(), seen);
        let of_buffer = matches!(by_loads, None | Some(Part::PacketBuffer | Part::Waiting)) && !parked;
        let reachable = demand.reachable();
        let handlers = self.handlers.clone();
        let payload = handlers.iter().find(|row| row.handler == "payload");
        let row = Row {
            nic: String::new(),
            packet_bytes,
            message_packets: messages.packets_each,
            messages: messages.measured,
            packets: self.packets,
            cycles_mean: payload.map(|row| row.cycles_mean),
            cycles_p99: payload.map(|row| row.cycles_p99),
            instructions_mean: payload.map(|row| row.instructions_mean),
            instructions_p99: payload.map(|row| row.instructions_p99),
            handler_ns: demand.handler_ps() / 1000.0,
            growth: demand.growth,
            handler_budget_ns: interval.ps() * hpus as f64 / 1000.0,
            hpus_needed: (reachable >= 1.0).then(|| demand.hpus_needed()),
            hpus,
            reachable_fraction: reachable,
            packet_interval_ns: interval.ps() / 1000.0,
            packet_wire_bytes: load.wire_bytes,
            line_rate_packets_per_s: line_rate,
            packets_per_s: line_rate * through,
            line_rate_fraction: through,
            bandwidth_bytes_per_s: line_rate * through * self.bytes as f64 / self.packets as f64,
            buffer_packets_used: self.buffer_used,
            buffer_packets: load.buffer_packets,
            loads,
            packet_dispositions: self.dispositions,
            sent_per_packet: load.sent as f64 / load.packets() as f64,
            host_cpu_ns: demand.load.host_cpu.map(|time| time.ns() / demand.load.packets() as f64),
            handlers,
            locks: demand.load.lock_rows(),
            retries: demand.load.retry_row(),
            has_more_to_do: has_more_to_do(demand.load),
            memory: memory_row(demand.load),
            unmodelled: load.unmodelled.clone(),
            refused_commands: load.refused_commands.clone(),
            limited_by: by_loads,
            ..Row::default()
        };
        self.with_verdict(row, &demand, (places, of_buffer))
    }

    /// Adds the parts, the bottleneck and the verdict to a row, which has the bottleneck by loads. `places` is the load of the
    /// packet buffer, and `of_buffer` tells whether the buffer itself may limit.
    fn with_verdict(&self, row: Row, demand: &Demand<'_>, (places, of_buffer): (f64, bool)) -> Row {
        let (by_loads, through, loads, parked) =
            (row.limited_by, row.line_rate_fraction, row.loads, self.parked);
        // While another part is overloaded, packets fill the buffer because of it.
        let host = demand.load.host.as_ref().map(|(name, _)| name.as_str());
        let movers = demand.load.busy.movers;
        let named = Named {
            host,
            cluster: demand.load.busiest_cluster(),
            engine: movers.and_then(|movers| movers.engine).map(|(name, _)| name),
            channel: movers.and_then(|movers| movers.channel).map(|(name, _)| name),
            slots: demand.load.packet_slots().map(|(which, _)| which),
        };
        let parts = parts(&row, of_buffer.then_some(places), named);
        let limited_by = match &self.lost {
            None => by_loads,
            Some(lost) => limit_of_traffic(by_loads, lost, through, &parts),
        };
        let (contexts, full) = demand.load.contexts();
        let limited_by = match parked {
            true => limited_by,
            false => limit_of_contexts(limited_by, full, loads.hpus * through),
        };
        let parts = match of_buffer && full > 0.0 {
            true => with_contexts(parts, contexts, limited_by == Some(Part::MessageContexts)),
            false => parts,
        };
        let (verdict, bottleneck) = verdict(limited_by, &parts);
        let (observed, steady) = match (limited_by, &self.lost) {
            // Neither the host nor the parts behind it stall the card's parts.
            (Some(Part::Host), Some(lost)) => (through * (1.0 - lost.at_host), 1.0),
            (Some(Part::Link), Some(lost)) if lost.at_link > 0.0 => (through * (1.0 - lost.at_link), 1.0),
            // With losses no sender was stalled. The run without loss shows the rate in the long run.
            (_, Some(_)) => (through, demand.sent_fraction),
            (_, None) => (through, through),
        };
        let capacity_fraction = capacity(limited_by, &parts, observed, steady);
        Row {
            verdict,
            bottleneck,
            limited_by,
            sustains_line_rate: limited_by.is_none(),
            capacity_fraction,
            parts,
            ..row
        }
    }
}

/// Whether handlers may wait for one another or for lines: locks, even without waits, words that handlers take, and data caches.
fn has_more_to_do(load: &Load) -> bool {
    let lines = load.caches.iter().any(|cache| cache.counters.hits + cache.counters.misses > 0);
    load.takes_words || !load.words.is_empty() || lines
}

/// Returns the maximum number of overlapping stays. One that ends as another begins does not overlap it.
fn most_at_once(stays: impl Iterator<Item = (Time, Time)>) -> u64 {
    let mut changes: Vec<(Time, i64)> =
        stays.flat_map(|(arrived, settled)| [(arrived, 1), (settled, -1)]).collect();
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    most.unsigned_abs()
}

/// Returns the time for which a run held its processor, by this clock. The next waiting run begins at the clock edge at which
/// this one ends. A run on an idle processor first waits for an edge, which is charged to no run.
pub(super) fn held(run: &HandlerRun, clock: Frequency) -> Duration {
    clock.cycles(run.cycles)
}

/// Returns the growth of packet times, by their payload handlers; none for messages without any.
fn growth([_, payloads, _]: &[Vec<&HandlerRun>; 3], clock: Frequency) -> Option<GrowthRow> {
    let mut costs = Series::default();
    for run in payloads {
        costs.add(held(run, clock));
        costs.done();
    }
    costs.growth()
}

fn handler_row(handler: &'static str, runs: &[&HandlerRun], clock: Frequency) -> HandlerRow {
    let count = runs.len() as u64;
    let sorted = |of: &dyn Fn(&HandlerRun) -> u64| {
        let mut values: Vec<u64> = runs.iter().map(|run| of(run)).collect();
        values.sort_unstable();
        values
    };
    let mean = |values: &[u64]| values.iter().sum::<u64>() as f64 / count as f64;
    let cycles = sorted(&|run| run.cycles);
    let instructions = sorted(&|run| run.instructions);
    let time = sorted(&|run| held(run, clock).ps());
    let queued = sorted(&|run| run.start.saturating_since(run.ready).ps());
    HandlerRow {
        handler,
        runs: count,
        cycles_mean: mean(&cycles),
        cycles_p99: nearest_rank(&cycles, 990),
        cycles_max: cycles[cycles.len() - 1],
        instructions_mean: mean(&instructions),
        instructions_p99: nearest_rank(&instructions, 990),
        instructions_max: instructions[instructions.len() - 1],
        time_ns_mean: mean(&time) / 1000.0,
        time_ns_p99: nearest_rank(&time, 990) as f64 / 1000.0,
        queued_ns_mean: mean(&queued) / 1000.0,
        returned: returned(runs),
    }
}

fn returned(runs: &[&HandlerRun]) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for run in runs {
        *counts.entry(run.outcome).or_default() += 1;
    }
    counts
}

/// Returns the dispositions of the measured packets. A message with a failed packet is not delivered, but the effects of its other
/// packets' handlers remain.
fn dispositions(
    [headers, payloads, _]: &[Vec<&HandlerRun>; 3],
    messages: Messages,
    payload_handler: bool,
) -> Dispositions {
    let mut dispositions = Dispositions::default();
    let mut handled: BTreeMap<u64, u64> = BTreeMap::new();
    for run in payloads {
        *handled.entry(run.message.sequence).or_default() += 1;
        match run.outcome {
            outcome if outcome.starts_with("SUCCESS") => dispositions.processed += 1,
            outcome if outcome.starts_with("DROP") => dispositions.dropped += 1,
            _ => dispositions.failed += 1,
        }
    }
    let decided: BTreeMap<u64, &str> =
        headers.iter().map(|run| (run.message.sequence, run.outcome)).collect();
    let Messages { packets_each, before, measured, .. } = messages;
    for message in before..before + measured {
        let others = packets_each - handled.get(&message).copied().unwrap_or(0);
        match decided.get(&message).copied().unwrap_or("PROCESS_DATA") {
            outcome if outcome.starts_with("DROP") => dispositions.dropped += others,
            outcome if outcome.starts_with("PROCEED") => dispositions.proceeded += others,
            outcome if outcome.starts_with("PROCESS_DATA") && !payload_handler => {
                dispositions.proceeded += others;
            }
            // After a failed handler the card drops the rest of the message.
            _ => dispositions.failed += others,
        }
    }
    dispositions
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_types::MessageId;
    use proptest::prelude::*;

    #[test]
    fn each_packet_measured_has_one_fate() {
        let run = |sequence, outcome| HandlerRun {
            hpu: 0,
            kind: "payload",
            message: MessageId { source: NodeId(0), sequence },
            offset: Some(0),
            ready: Time::ZERO,
            start: Time::ZERO,
            end: Time::ZERO,
            parked: Duration::ZERO,
            cycles: 1,
            instructions: 1,
            outcome,
        };
        let payloads = [(1, "SUCCESS"), (1, "DROP"), (2, "trap"), (3, "SUCCESS")].map(|(m, o)| run(m, o));
        let headers = [(1, "PROCESS_DATA"), (3, "DROP"), (4, "PROCEED"), (5, "trap")].map(|(m, o)| run(m, o));
        let runs = [headers.iter().collect(), payloads.iter().collect(), Vec::new()];
        let messages = Messages { packets_each: 4, before: 1, measured: 5, after: 1 };
        let dispositions = dispositions(&runs, messages, true);
        assert_eq!(
            (dispositions.processed, dispositions.dropped, dispositions.proceeded, dispositions.failed),
            (2, 4, 4, 10)
        );
    }

    #[test]
    fn a_slot_is_taken_again_at_the_instant_at_which_it_is_free() {
        let at = Time::from_ps;
        let most = |stays: &[(u64, u64)]| most_at_once(stays.iter().map(|&(a, b)| (at(a), at(b))));
        assert_eq!(most(&[]), 0);
        assert_eq!(most(&[(0, 5), (5, 9), (9, 12)]), 1);
        assert_eq!(most(&[(0, 5), (4, 9), (4, 5)]), 3);
    }

    proptest! {
        #[test]
        fn overlaps_are_counted(stays in prop::collection::vec((0u64..100, 1u64..30), 0..40)) {
            let inside = |t: u64| stays.iter().filter(|(from, long)| (*from..from + long).contains(&t)).count();
            let most = (0..130).map(inside).max().unwrap_or(0) as u64;
            let found = most_at_once(
                stays.iter().map(|(from, long)| (Time::from_ps(*from), Time::from_ps(from + long))),
            );
            prop_assert_eq!(found, most);
        }
    }
}
