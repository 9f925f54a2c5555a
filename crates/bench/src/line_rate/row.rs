//! The results of a line-rate check.

use super::super::figures::nearest_rank;
use super::burst::BurstRow;
use super::demand::Demand;
use super::faster::TriedRow;
use super::growth::{GrowthRow, Series};
use super::limit::{CLOSE, CONTEXTS, Lost, Seen, held_up, limit, limit_of_contexts, limit_of_traffic};
use super::load::{Load, LockRow, RetryRow};
use super::memory::{MemoryRow, memory_row};
use super::meter::TrafficRow;
use super::request::Messages;
use super::sensitivity::SensitivityRow;
use super::verdict::{Named, PartRow, Verdict, capacity, parts, verdict, with_contexts};
use nicety::record::Recording;
use nicety::{Duration, Error, Time};
use nicety_nic::RefusedCommand;
use nicety_types::{Frequency, HandlerRun, NodeId};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Add;

/// Statistics of the runs of one handler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "HandlerFigures")]
pub struct HandlerRow {
    /// `header`, `payload` or `completion`.
    pub handler: &'static str,
    /// Number of runs.
    pub runs: u64,
    /// Cycles on its processor, including start, end and waits.
    pub cycles_mean: f64,
    /// The 99th percentile, by nearest rank.
    pub cycles_p99: u64,
    /// The maximum.
    pub cycles_max: u64,
    /// Instructions.
    pub instructions_mean: f64,
    /// The 99th percentile.
    pub instructions_p99: u64,
    /// The maximum.
    pub instructions_max: u64,
    /// Time on its processor.
    pub time_ns_mean: f64,
    /// The 99th percentile.
    pub time_ns_p99: f64,
    /// Wait for a processor when ready.
    pub queued_ns_mean: f64,
    /// Number of runs by return code.
    pub returned: BTreeMap<&'static str, u64>,
}

/// The fates of the packets measured, each of which has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PacketFates")]
pub struct Fates {
    /// Their payload handler returned `SUCCESS`.
    pub processed: u64,
    /// A payload handler dropped them, or a header handler their message.
    pub dropped: u64,
    /// They went on to host memory: a header handler returned `PROCEED`, or there is no payload handler.
    pub proceeded: u64,
    /// Their handler failed, or an earlier one of their message.
    pub failed: u64,
}

impl Add for Fates {
    type Output = Fates;

    fn add(self, other: Fates) -> Fates {
        Fates {
            processed: self.processed + other.processed,
            dropped: self.dropped + other.dropped,
            proceeded: self.proceeded + other.proceeded,
            failed: self.failed + other.failed,
        }
    }
}

/// The load of each resource at line rate: above 1 it cannot keep up. Over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Loads {
    /// The handler processors, over the messages measured.
    pub hpus: f64,
    /// The matching unit.
    pub matching: f64,
    /// The card's own link, with the packets that handlers send.
    pub link: f64,
    /// The host bus, towards the card.
    pub bus_to_card: f64,
    /// The host bus, towards host memory.
    pub bus_to_host: f64,
    /// The word of memory that handlers hold longest one at a time, a lock, with its hand-over from one to the next.
    pub lock: f64,
    /// The word that handlers load and change if nobody was faster, and to which they came back most often: from the load to the change, and to
    /// the next load.
    pub contended_word: f64,
    /// The busiest bank of a level of memory that processors share; 0 where the card has no such level.
    pub memory_bank: f64,
    /// The send engine of a card of Portals messages: it begins a message a gap behind the one before, or when that has left.
    pub send_engine: Option<f64>,
    /// On a card with clusters of handler processors, the writer of its packet buffer, which takes a beat a cycle.
    pub packet_writer: Option<f64>,
    /// The busiest DMA engine of a cluster, with packets and with what handlers have copied.
    pub cluster_dma: Option<f64>,
    /// The sender of handlers' packets there.
    pub packet_sender: Option<f64>,
    /// The places that packets have in clusters, from when they are assigned to one until their handlers and the commands of these have
    /// ended (`hpu.packets.in_flight`), without their waits for the copy and for a processor.
    pub packets_in_flight: Option<f64>,
    /// The slots of packets, likewise: of the packet buffer or of the clusters' memories, whichever has fewer to spare.
    pub packet_slots: Option<f64>,
    /// The part of the host that has most to do with the frames that come to it, such as the CPU of a receive channel's interrupts;
    /// none on cards whose host takes no packets.
    pub host: Option<f64>,
}

impl Loads {
    /// That of a part, by its name; none where it has none of its own.
    pub(super) fn of(&self, part: &str) -> Option<f64> {
        Some(match part {
            "handler processors" => self.hpus,
            "matching unit" => self.matching,
            "link" => self.link,
            "bus to card" => self.bus_to_card,
            "bus to host" => self.bus_to_host,
            "lock" => self.lock,
            "contended word" => self.contended_word,
            "memory bank" => self.memory_bank,
            "send engine" => return self.send_engine,
            "packet writer" => return self.packet_writer,
            "cluster DMA" => return self.cluster_dma,
            "packet sender" => return self.packet_sender,
            "packets in flight" => return self.packets_in_flight,
            "packet slots" => return self.packet_slots,
            "host" => return self.host,
            _ => return None,
        })
    }
}

/// One measurement: a card and a packet size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LineRateRow")]
pub struct Row {
    /// The card.
    pub nic: String,
    /// Payload of a packet.
    pub packet_bytes: u64,
    /// Packets of a message.
    pub message_packets: u64,
    /// Messages measured.
    pub messages: u64,
    /// Packets measured; of traffic, those handled.
    pub packets: u64,
    /// Cycles of a payload handler: the mean; none if the program has no payload handler or it never ran.
    pub cycles_mean: Option<f64>,
    /// The 99th percentile.
    pub cycles_p99: Option<u64>,
    /// Instructions of a payload handler: the mean.
    pub instructions_mean: Option<f64>,
    /// The 99th percentile.
    pub instructions_p99: Option<u64>,
    /// The fates of the packets.
    pub packet_fates: Fates,
    /// Packets that the card sent per packet received, over the whole run.
    pub sent_per_packet: f64,
    /// Each handler that ran.
    pub handlers: Vec<HandlerRow>,
    /// Handler processor time per packet: its payload handler, and its share of header and completion handlers,
    /// including waits for transfers and commands. Of traffic, per packet offered.
    pub handler_ns: f64,
    /// How that has grown while the run went on, if it has, as where tables fill up: then loads of processors are those of the last quarter of
    /// the packets.
    pub growth: Option<GrowthRow>,
    /// Its budget: the time between two packets, times the processors.
    pub handler_budget_ns: f64,
    /// Handler processors that are busy at line rate; none if no number suffices, because another resource is
    /// overloaded.
    pub hpus_needed: Option<u64>,
    /// Handler processors that the card has.
    pub hpus: u64,
    /// Whether the card sustains the line rate for ever.
    pub sustains_line_rate: bool,
    /// `yes`; `barely` where it does, with a part loaded to 90 % or more; or `no`.
    pub verdict: Verdict,
    /// The part of the card that limits: what `limited_by` has, or else what limits in the last run that was `tried`, or the part with the
    /// highest load.
    pub limiting_part: String,
    /// The rate that the card sustains with this part, over the line rate: above 1 it could do more. By its load; where no load says it,
    /// as with `waiting`, the rate that was seen. Where the card does not keep up, that is the most, as far as no end of the run is in it.
    /// Where it keeps up with traffic below the wire's rate, it is what the runs that were `tried` show, and that of the `burst`.
    pub capacity_fraction: f64,
    /// Runs with the same traffic at the rate that the card is said to sustain, as far as the wire takes it, and beyond that where handlers wait for
    /// locks, words or lines; none otherwise where the traffic has the wire's rate, or where the card does not keep up.
    pub tried: Vec<TriedRow>,
    /// A run at the traffic's rate that a burst comes before, where handlers wait for locks, words or lines, or where a run that was tried was
    /// stopped.
    pub burst: Option<BurstRow>,
    /// The parts of the card with their headroom at the line rate, the most loaded first. The packet buffer is among them
    /// where no other part is overloaded, and no handler yields its processor.
    pub parts: Vec<PartRow>,
    /// The bottleneck, if the card cannot keep up: `handler processors`, `matching unit`, `link`, `bus to card`, `bus to
    /// host`, `send engine`, `packet writer`, `cluster DMA`, `packet sender`, `packets in flight`, `packet slots`, `lock` (a word that one handler at a time holds),
    /// `contended word` (one that handlers try to change until nobody was faster),
    /// `memory bank`, `host` (the part of it that takes frames), or `cache misses`
    /// where handler processors would keep up without their waits for lines. If none is overloaded, `packet buffer` where
    /// the sender waits for credits, `message contexts` where messages have all of them (`hpu.contexts`), or `waiting` where handlers wait for one
    /// another.
    pub limited_by: Option<&'static str>,
    /// The fraction of line rate that any number of handler processors would reach: the limit of the other resources.
    pub reachable_fraction: f64,
    /// The time between packets at line rate.
    pub packet_interval_ns: f64,
    /// Bytes of a packet on the link, including its header.
    pub packet_wire_bytes: u64,
    /// Packets a second at line rate.
    pub line_rate_packets_per_s: f64,
    /// Packets a second that were processed. Where packets were lost, the others in the time of all.
    pub packets_per_s: f64,
    /// The same over the line rate.
    pub line_rate_fraction: f64,
    /// Their payload.
    pub bandwidth_bytes_per_s: f64,
    /// The most packets in the packet buffer at once.
    pub buffer_packets_used: u64,
    /// Its capacity in packets.
    pub buffer_packets: u64,
    /// The load of each resource at line rate.
    pub loads: Loads,
    /// Words of memory that handlers have waited for, by their loads; the first few.
    pub locks: Vec<LockRow>,
    /// The word that is no lock and to which handlers came back most often, if they came back to any.
    pub retries: Option<RetryRow>,
    /// Whether handlers may wait for one another, or for lines of caches, the more the faster packets come.
    #[serde(skip)]
    pub(super) has_more_to_do: bool,
    /// The memory of handlers: what of it is shared, and who waits there.
    pub memory: MemoryRow,
    /// Commands of handlers that the card refused, in the whole run: messages before and after those measured are in it.
    pub refused_commands: Vec<RefusedCommand>,
    /// The traffic, and what became of it, if packets are not the wire's: then all figures are over the whole run, the
    /// line rate is that of the traffic, and sizes are means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficRow>,
    /// The assumed values of the card's spec to which the verdict is most sensitive, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityRow>,
}

/// The records of the messages measured.
pub(super) struct Measured {
    /// Header, payload and completion handlers, those that ran.
    pub(super) handlers: Vec<HandlerRow>,
    /// Time that their runs held processors, all together.
    pub(super) held: Duration,
    /// How that has grown meanwhile.
    pub(super) growth: Option<GrowthRow>,
    /// Whether one yielded its processor.
    pub(super) parked: bool,
    pub(super) fates: Fates,
    /// Packets measured, and their payload.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The time from the completion of the last packet before to that of the last one measured.
    pub(super) took: Duration,
    /// Busy time of the processors in it, all together.
    pub(super) at_work: Duration,
    pub(super) buffer_used: u64,
    /// Whether the sender was held up all along, waiting for credits: it sent later than the wire would have let it.
    pub(super) held_up: bool,
    /// Time that the packets measured held slots of the packet buffer, all together, from their departure until the
    /// sender has the credit back.
    pub(super) places: Duration,
    /// What became of traffic that the card could not take; none of equal packets, of which none is lost.
    pub(super) lost: Option<Lost>,
}

pub(super) const KINDS: [&str; 3] = ["header", "payload", "completion"];

impl Measured {
    pub(super) fn of(load: &Load, recording: &Recording) -> Result<Measured, Error> {
        let messages = load.messages;
        let measured = messages.before..messages.before + messages.measured;
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
        let fates = fates(&runs, load.messages, load.payload_handler);
        let packets = recording.packets.iter().filter(|packet| packet.message.source == NodeId(0));
        let places = packets
            .clone()
            .filter(|packet| measured.contains(&packet.message.sequence))
            .filter_map(|packet| Some(packet.settled?.since(packet.sent) + load.credit))
            .sum();
        let mut done: Vec<Time> = packets.clone().filter_map(|packet| packet.settled).collect();
        if (done.len() as u64) < messages.total() * messages.packets_each {
            return Err(Error::Program(format!(
                "only {} of {} packets were done with at the end of the run",
                done.len(),
                messages.total() * messages.packets_each
            )));
        }
        done.sort_unstable();
        let mut sent: Vec<Time> = packets.clone().map(|packet| packet.sent).collect();
        sent.sort_unstable();
        let [first, end] =
            [measured.start, measured.end].map(|messages| (messages * load.messages.packets_each) as usize);
        let held_up = held_up(&sent[first.saturating_sub(1)..end], Duration::from_ps(load.interval.times(1)));
        let last_of = |messages: u64| done[(messages * load.messages.packets_each) as usize - 1];
        let (from, until) = (last_of(measured.start), last_of(measured.end));
        let took = until.since(from);
        let at_work = recording
            .handler_runs
            .iter()
            .filter(|(node, _)| *node == NodeId(1))
            .map(|(_, run)| run.end.min(until).saturating_since((run.start + run.parked).max(from)))
            .sum();
        let stays = packets.filter_map(|packet| Some((packet.arrived?, packet.settled?)));
        let handlers = runs.iter().zip(KINDS).filter(|(runs, _)| !runs.is_empty());
        Ok(Measured {
            handlers: handlers.map(|(runs, kind)| handler_row(kind, runs, load.clock)).collect(),
            held: runs.iter().flatten().map(|run| held(run, load.clock)).sum(),
            growth: growth(&runs, load.clock),
            parked: runs.iter().flatten().any(|run| !run.parked.is_zero()),
            fates,
            packets: messages.measured * messages.packets_each,
            bytes: messages.measured * messages.packets_each * load.packet_bytes,
            took,
            at_work,
            buffer_used: most_at_once(stays),
            held_up,
            places,
            lost: None,
        })
    }

    /// The rate at which senders sent in the second half of the run, over that at which they were to.
    pub(super) fn sent_fraction(&self) -> f64 {
        self.lost.map_or(1.0, |lost| lost.sent_fraction)
    }

    /// Whether packets came through as fast as they came, and nothing held their sender up.
    pub(super) fn is_at_rate(&self, load: &Load) -> bool {
        !self.held_up && load.interval.times(self.packets) as f64 >= CLOSE * self.took.ps() as f64
    }

    /// The row of a run, with what its packets need of the card: what was seen in the run itself, or in one without loss.
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
        let packets_per_s = line_rate.min(1e12 * self.packets as f64 / self.took.ps() as f64);
        let fraction = packets_per_s / line_rate;
        // Of packets that are lost it tells nothing how long the others take to leave the buffer behind the last one.
        let through = match self.lost {
            Some(Lost { dropped, .. }) if dropped > 0 => {
                self.packets as f64 / (self.packets + dropped) as f64
            }
            _ => fraction,
        };
        let (loads, handled) = (demand.loads(), own.loads_at_work());
        let parked = self.parked;
        let places = self.places.ps() as f64 / (interval.times(self.packets) * load.buffer_packets) as f64;
        let seen = Seen {
            hpus_busy: self.at_work.ps() as f64 >= CLOSE * (hpus * self.took.ps()) as f64,
            held_up: self.held_up || !parked && places > 1.0,
            // Where handlers yield, it is full because they wait.
            buffer_full: !parked && (places * fraction >= CLOSE || loads.hpus <= 1.0),
            fraction,
        };
        let by_loads = limit(&loads, &handled, demand.misses(), seen);
        let of_buffer = matches!(by_loads, None | Some("packet buffer" | "waiting")) && !parked;
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
            packet_fates: self.fates,
            sent_per_packet: load.sent as f64 / load.packets() as f64,
            handlers,
            locks: demand.load.lock_rows(),
            retries: demand.load.retry_row(),
            has_more_to_do: has_more_to_do(demand.load),
            memory: memory_row(demand.load),
            refused_commands: load.refused_commands.clone(),
            ..Row::default()
        };
        // While another part is overloaded, packets fill the buffer because of that.
        let host = demand.load.host.as_ref().map(|(name, _)| name.as_str());
        let named = Named {
            host,
            cluster: demand.load.busiest_cluster(),
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
            true => with_contexts(parts, contexts, limited_by == Some(CONTEXTS)),
            false => parts,
        };
        let (verdict, limiting_part) = verdict(limited_by, &parts);
        let (observed, steady) = match (limited_by, &self.lost) {
            // The host does not hold up the card's parts, nor does what is behind them.
            (Some("host"), Some(lost)) => (through * (1.0 - lost.at_host), 1.0),
            (Some("link"), Some(lost)) if lost.at_link > 0.0 => (through * (1.0 - lost.at_link), 1.0),
            // Where packets were lost nobody was held up; the run without loss shows what comes through in the long run.
            (_, Some(_)) => (through, demand.sent_fraction),
            (_, None) => (through, through),
        };
        let capacity_fraction = capacity(limited_by, &parts, observed, steady);
        Row {
            verdict,
            limiting_part: limiting_part.to_owned(),
            limited_by,
            sustains_line_rate: limited_by.is_none(),
            capacity_fraction,
            parts,
            ..row
        }
    }
}

/// Whether they may: locks, also those that nobody waited for, words that are taken, and data caches.
fn has_more_to_do(load: &Load) -> bool {
    let lines = load.caches.iter().any(|cache| cache.counters.hits + cache.counters.misses > 0);
    load.takes_words || !load.words.is_empty() || lines
}

/// The most stays that overlap; one that ends as another begins does not overlap it.
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

/// How long a run held its processor, with this clock: where others wait for it, the next one begins with the edge at which this
/// one ends. One that begins on an idle processor waits for an edge first, which is nobody's time.
pub(super) fn held(run: &HandlerRun, clock: Frequency) -> Duration {
    clock.cycles(run.cycles)
}

/// How the time of packets has grown, by their payload handlers; of messages without any, nothing is told.
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

/// The fates of the packets measured. A message with a failed packet is not delivered, but the effects of its other
/// packets' handlers remain.
fn fates([headers, payloads, _]: &[Vec<&HandlerRun>; 3], messages: Messages, payload_handler: bool) -> Fates {
    let mut fates = Fates::default();
    let mut handled: BTreeMap<u64, u64> = BTreeMap::new();
    for run in payloads {
        *handled.entry(run.message.sequence).or_default() += 1;
        match run.outcome {
            outcome if outcome.starts_with("SUCCESS") => fates.processed += 1,
            outcome if outcome.starts_with("DROP") => fates.dropped += 1,
            _ => fates.failed += 1,
        }
    }
    let decided: BTreeMap<u64, &str> =
        headers.iter().map(|run| (run.message.sequence, run.outcome)).collect();
    let Messages { packets_each, before, measured, .. } = messages;
    for message in before..before + measured {
        let others = packets_each - handled.get(&message).copied().unwrap_or(0);
        match decided.get(&message).copied().unwrap_or("PROCESS_DATA") {
            outcome if outcome.starts_with("DROP") => fates.dropped += others,
            outcome if outcome.starts_with("PROCEED") => fates.proceeded += others,
            outcome if outcome.starts_with("PROCESS_DATA") && !payload_handler => {
                fates.proceeded += others;
            }
            // After a failed handler the card drops the rest of the message.
            _ => fates.failed += others,
        }
    }
    fates
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
        let fates = fates(&runs, messages, true);
        assert_eq!((fates.processed, fates.dropped, fates.proceeded, fates.failed), (2, 4, 4, 10));
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
