//! The results of a line-rate check.

use super::burst::BurstRow;
use super::faster::TriedRow;
use super::growth::GrowthRow;
use super::load::{LockRow, RetryRow};
use super::memory::MemoryRow;
use super::meter::TrafficRow;
use super::sensitivity::SensitivityRow;
use super::unmodelled::UnmodelledRow;
use super::verdict::{PartRow, Verdict};
use nicety_nic::RefusedCommand;
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
    /// Where handlers are written for PsPIN, the command engine with the most occupied places (`hpu.commands.engine_commands`).
    pub command_engine: Option<f64>,
    /// The busiest channel between these engines and the card's memories (`hpu.interconnect`).
    pub memory_channel: Option<f64>,
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
            "command engine" => return self.command_engine,
            "memory channel" => return self.memory_channel,
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
    /// Whether the card sustains the line rate for ever, as far as it is modelled.
    pub sustains_line_rate: bool,
    /// `yes`; `barely` where it does, with a part loaded to 90 % or more; `no`; or `not judged` where it would be one of the first two, and handlers share
    /// words in memory whose contention is not modelled on this card (`unmodelled`).
    pub verdict: Verdict,
    /// The part of the card that limits: what `limited_by` has, or else what limits in the last run that was `tried`, or the part with the
    /// highest load.
    pub limiting_part: String,
    /// The rate that the card sustains, over the line rate: above 1 it could do more. It is found by the runs that were `tried`, between
    /// `sustained_fraction` and `not_sustained_fraction`; where the load of a part gives the same within a hundredth, it is that.
    pub capacity_fraction: f64,
    /// Runs with the same traffic at other rates, in their order: the search for the rate that the card sustains. None where a burst
    /// stops handlers, and where the card's own wire limits at the line rate.
    pub tried: Vec<TriedRow>,
    /// The highest rate of these runs that the card sustained, over the line rate; 1 where no higher one did, and it keeps up. None without a search, and
    /// where it sustained none.
    pub sustained_fraction: Option<f64>,
    /// The lowest rate above that it did not sustain; none where it sustained all that was looked for.
    pub not_sustained_fraction: Option<f64>,
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
    /// Words that handlers share in memory whose contention is not modelled.
    pub unmodelled: Option<UnmodelledRow>,
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
