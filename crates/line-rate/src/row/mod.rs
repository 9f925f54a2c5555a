//! The results of a line-rate check.

mod sensitivity;
mod traffic;
mod trials;

pub use sensitivity::{SensitiveRow, SensitivityRow, StoppedRow, VariedRow};
pub use traffic::{PortRow, TrafficRow};
pub use trials::{BurstRow, TrialRow};

use super::growth::GrowthRow;
use super::load::{LockRow, RetryRow};
use super::memory::MemoryRow;
use super::part::Part;
use super::unmodelled::UnmodelledRow;
use super::verdict::{PartRow, Verdict};
use nicety_nic_core::RefusedCommand;
use nicety_xdp::XdpFigures;
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
    /// 99th percentile of the cycles, by nearest rank.
    pub cycles_p99: u64,
    /// Maximum cycles.
    pub cycles_max: u64,
    /// Mean instructions.
    pub instructions_mean: f64,
    /// 99th percentile of the instructions.
    pub instructions_p99: u64,
    /// Maximum instructions.
    pub instructions_max: u64,
    /// Mean time on its processor.
    pub time_ns_mean: f64,
    /// 99th percentile of that time.
    pub time_ns_p99: f64,
    /// Mean wait for a processor when ready.
    pub queued_ns_mean: f64,
    /// Number of runs by return code.
    pub returned: BTreeMap<&'static str, u64>,
}

/// The dispositions of the measured packets; each packet has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PacketDispositions")]
pub struct Dispositions {
    /// The payload handler returned `SUCCESS`.
    pub processed: u64,
    /// A payload handler dropped the packet, or a header handler its message.
    pub dropped: u64,
    /// The packet went on to host memory: a header handler returned `PROCEED`, or there is no payload handler.
    pub proceeded: u64,
    /// Its handler failed, or an earlier one of its message.
    pub failed: u64,
}

impl Add for Dispositions {
    type Output = Dispositions;

    fn add(self, other: Dispositions) -> Dispositions {
        Dispositions {
            processed: self.processed + other.processed,
            dropped: self.dropped + other.dropped,
            proceeded: self.proceeded + other.proceeded,
            failed: self.failed + other.failed,
        }
    }
}

/// The load of each resource at line rate, over the whole run. Above 1 the resource cannot keep up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Loads {
    /// The handler cores, over the measured messages.
    pub hpus: f64,
    /// The issue of instructions of all cores, where hardware threads share it (`hpu.threads`, `hpu.issue`).
    pub instruction_issue: Option<f64>,
    /// The matching unit.
    pub matching: f64,
    /// The card's own link, with the packets that handlers send.
    pub link: f64,
    /// The host bus, towards the card.
    pub bus_to_card: f64,
    /// The host bus, towards host memory.
    pub bus_to_host: f64,
    /// The word of memory that one handler at a time holds longest: a lock, with its hand-overs.
    pub lock: f64,
    /// The most retried word that handlers load and change only if it is unchanged: from the load to the change, and to the next
    /// load.
    pub contended_word: f64,
    /// The busiest bank of a shared level of memory; 0 on a card without such a level.
    pub memory_bank: f64,
    /// The send engine of a card of Portals messages. It begins a message a gap behind the previous one, or when that has left.
    pub send_engine: Option<f64>,
    /// The writer of the packet buffer, which takes a beat per cycle; on a card with clusters of handler cores.
    pub packet_writer: Option<f64>,
    /// The busiest DMA engine of a cluster, with packets and with copies by handlers.
    pub cluster_dma: Option<f64>,
    /// The sender of handlers' packets, on a card with clusters.
    pub packet_sender: Option<f64>,
    /// Where handlers are written for PsPIN, the command engine with the most occupied places (`hpu.commands.engine_commands`).
    pub command_engine: Option<f64>,
    /// The busiest channel between these engines and the card's memories (`hpu.interconnect`).
    pub memory_channel: Option<f64>,
    /// The places of packets in clusters (`hpu.packets.in_flight`), from the assignment to a cluster to the end of handlers and
    /// their commands. Waits for the copy and for a processor do not count.
    pub packets_in_flight: Option<f64>,
    /// The scarcer slots of packets over the same time: of the packet buffer or of the clusters' memories.
    pub packet_slots: Option<f64>,
    /// The busiest part of the host, by its work on arriving frames, such as the CPU of a receive channel's interrupts. None on
    /// cards with a host that takes no packets.
    pub host: Option<f64>,
}

impl Loads {
    /// Returns the load of a part; none if it has no load of its own.
    pub(crate) fn of(&self, part: Part) -> Option<f64> {
        Some(match part {
            Part::HandlerCores => self.hpus,
            Part::InstructionIssue => return self.instruction_issue,
            Part::MatchingUnit => self.matching,
            Part::Link => self.link,
            Part::BusToCard => self.bus_to_card,
            Part::BusToHost => self.bus_to_host,
            Part::Lock => self.lock,
            Part::ContendedWord => self.contended_word,
            Part::MemoryBank => self.memory_bank,
            Part::SendEngine => return self.send_engine,
            Part::PacketWriter => return self.packet_writer,
            Part::ClusterDma => return self.cluster_dma,
            Part::PacketSender => return self.packet_sender,
            Part::CommandEngine => return self.command_engine,
            Part::MemoryChannel => return self.memory_channel,
            Part::PacketsInFlight => return self.packets_in_flight,
            Part::PacketSlots => return self.packet_slots,
            Part::Host => return self.host,
            Part::CacheMisses | Part::PacketBuffer | Part::MessageContexts | Part::Waiting => return None,
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
    /// Packets measured; with traffic, packets handled.
    pub packets: u64,
    /// Mean cycles of a payload handler; none without runs of a payload handler.
    pub cycles_mean: Option<f64>,
    /// 99th percentile of the cycles.
    pub cycles_p99: Option<u64>,
    /// Mean instructions of a payload handler.
    pub instructions_mean: Option<f64>,
    /// 99th percentile of the instructions.
    pub instructions_p99: Option<u64>,
    /// The dispositions of the packets.
    pub packet_dispositions: Dispositions,
    /// Packets that the card sent per packet received, over the whole run.
    pub sent_per_packet: f64,
    /// CPU time of the host per packet; none on cards with a host that takes no packets.
    pub host_cpu_ns: Option<f64>,
    /// Each handler that ran.
    pub handlers: Vec<HandlerRow>,
    /// Handler core time per packet: its payload handler, and its share of header and completion handlers, including waits
    /// for transfers and commands. With traffic, per packet offered.
    pub handler_ns: f64,
    /// Growth of that time during the run, if any, for example because tables fill up. Then the processors' loads are those of
    /// the last quarter of the packets.
    pub growth: Option<GrowthRow>,
    /// The budget of that time: the packet interval, times the processors.
    pub handler_budget_ns: f64,
    /// Busy handler cores at line rate; none if no number suffices, because another resource is overloaded.
    pub hpus_needed: Option<u64>,
    /// Handler cores of the card.
    pub hpus: u64,
    /// Whether the card sustains the line rate forever, within the model.
    pub sustains_line_rate: bool,
    /// `yes`; `barely`: yes, but a part has a load of 90 % or more; `no`. `not judged`: yes or barely, but handlers share words
    /// in memory without a model of contention on this card (`unmodelled`).
    pub verdict: Verdict,
    /// The limiting part: `limited_by`, or else that of the last run in `trials`, or the most loaded part.
    pub bottleneck: Part,
    /// The sustainable rate over the line rate; above 1 there is a margin. The runs in `trials` find it between
    /// `sustained_fraction` and `not_sustained_fraction`. If the load of a part gives the same within a hundredth, that value is
    /// taken.
    pub capacity_fraction: f64,
    /// Runs with the same traffic at other rates, in order: the search for the sustainable rate. None where a burst stops
    /// handlers, and where the card's own wire limits at the line rate.
    pub trials: Vec<TrialRow>,
    /// The highest sustained rate of these runs, over the line rate. It is 1 if the card keeps up and no higher rate was
    /// sustained. None without a search, and without a sustained rate.
    pub sustained_fraction: Option<f64>,
    /// The lowest unsustained rate above it; none if all tried rates were sustained.
    pub not_sustained_fraction: Option<f64>,
    /// A run at the traffic's rate behind a burst, if handlers wait for locks, words or lines, or if a run in `trials` was
    /// stopped.
    pub burst: Option<BurstRow>,
    /// The parts of the card with their headroom at the line rate, the most loaded first. The packet buffer is included if no
    /// other part is overloaded and no handler yields its processor.
    pub parts: Vec<PartRow>,
    /// The bottleneck, if the card cannot keep up.
    pub limited_by: Option<Part>,
    /// The fraction of line rate that an unlimited number of handler cores would reach: the limit of the other resources.
    pub reachable_fraction: f64,
    /// The packet interval at line rate.
    pub packet_interval_ns: f64,
    /// Bytes of a packet on the link, including its header.
    pub packet_wire_bytes: u64,
    /// Packets per second at line rate.
    pub line_rate_packets_per_s: f64,
    /// Packets processed per second. With losses: the remaining packets over the time of all.
    pub packets_per_s: f64,
    /// `packets_per_s` over the line rate.
    pub line_rate_fraction: f64,
    /// Payload of `packets_per_s`.
    pub bandwidth_bytes_per_s: f64,
    /// Maximum occupancy of the packet buffer, in packets.
    pub buffer_packets_used: u64,
    /// Its capacity in packets.
    pub buffer_packets: u64,
    /// The load of each resource at line rate.
    pub loads: Loads,
    /// Words of memory that handlers waited for, by their loads; the first few.
    pub locks: Vec<LockRow>,
    /// The most retried word that is not a lock, if any.
    pub retries: Option<RetryRow>,
    /// Whether handlers may wait for one another, or for lines of caches, and more so at higher rates.
    #[serde(skip)]
    pub(crate) has_more_to_do: bool,
    /// The memory of handlers: shared parts, and the waits there.
    pub memory: MemoryRow,
    /// Words that handlers share in memory without a model of contention.
    pub unmodelled: Option<UnmodelledRow>,
    /// Commands of handlers that the card refused, in the whole run, including messages before and after the measurement.
    pub refused_commands: Vec<RefusedCommand>,
    /// The traffic and its packet dispositions, for packets other than the wire's. Then all figures are over the whole run, the
    /// line rate is that of the traffic, and sizes are means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<TrafficRow>,
    /// The verdicts and maps of an XDP program. The caller, which has the object, sets this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpFigures>,
    /// The data of the handlers' program after the first run.
    #[serde(skip)]
    pub program_data: Option<Vec<u8>>,
    /// The assumed values of the card's spec to which the verdict is most sensitive, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityRow>,
}
