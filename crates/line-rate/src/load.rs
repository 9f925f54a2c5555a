//! The work of packets on a card: the figures of a run that the card itself keeps, over the whole run.

use super::request::Messages;
use super::tested::{OnHost, Tested};
use super::unmodelled::{SharedBefore, UnmodelledRow};
use nicety::{Duration, Handlers};
use nicety_nic_core::RefusedCommand;
use nicety_nic_ethernet::HostWork;
use nicety_nic_processors::{
    Busy, CacheUse, HandlerStatistics, HeldWord, Level, LevelUse, Occupied, RetriedWord,
};
use nicety_types::Frequency;
use schemars::JsonSchema;
use serde::Serialize;

/// Maximum words of memory in a row.
const LOCKS: usize = 8;

/// A word of memory that one handler at a time holds, over the whole run. It is a lock if handlers wait for it; otherwise it may
/// be one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Lock")]
pub struct LockRow {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The source line that acquires it.
    pub acquired_at: String,
    /// The source line that releases it, if it differs.
    pub released_at: Option<String>,
    /// The source line that waits for it, or would wait.
    pub waited_at: String,
    /// Number of waits. Without waits it is not among the parts: handlers did not meet, or use it differently.
    pub waits: u64,
    /// Time per packet for which a handler holds it.
    pub held_ns: f64,
    /// Time per packet for which it is free while a handler waits.
    pub handover_ns: f64,
    /// Its load at line rate, held or handed over.
    pub load: f64,
    /// Maximum packets per second with any number of handler cores, with an immediate hand-over: two cannot hold it at once.
    pub max_packets_per_s: f64,
}

/// A word of memory that handlers retry and that is not a lock: a counter that others changed, or a flag.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Retries")]
pub struct RetryRow {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The source line that retries it.
    pub retried_at: String,
    /// Retries per packet, over the whole run. At a higher rate there may be far more.
    pub retries_per_packet: f64,
    /// For handlers that load the word and change it only if it is unchanged: time per packet from the load to the change. No
    /// other handler succeeds in it.
    pub update_ns: f64,
    /// Time per packet in which no handler has loaded it for the next change, while a handler tries.
    pub handover_ns: f64,
    /// The sum of both over the packet interval at line rate.
    pub load: f64,
}

/// The packets that arrive at a card.
#[derive(Clone, Copy)]
pub(super) struct Input {
    /// The payload of a packet, or its mean.
    pub(super) packet_bytes: u64,
    pub(super) messages: Messages,
    /// The packet interval at line rate.
    pub(super) interval: Interval,
}

/// The mean packet interval: a time, and the packets that take it. Rounded to picoseconds, it would turn a load of 1 into one
/// above 1.
#[derive(Clone, Copy)]
pub(super) struct Interval {
    time: Duration,
    packets: u64,
}

impl Interval {
    /// Returns the interval of packets that each take this long.
    pub(super) const fn of_each(time: Duration) -> Interval {
        Interval { time, packets: 1 }
    }

    /// Returns the interval of packets that take this long in all; at least 1 ps each.
    pub(super) fn of_all(time: Duration, packets: u64) -> Interval {
        Interval { time: time.max(Duration::from_ps(packets)), packets }
    }

    /// The time of `packets` packets, in picoseconds.
    pub(super) fn times(self, packets: u64) -> u64 {
        (u128::from(self.time.ps()) * u128::from(packets) / u128::from(self.packets)) as u64
    }

    /// The interval in picoseconds.
    pub(super) fn ps(self) -> f64 {
        self.time.ps() as f64 / self.packets as f64
    }
}

/// The work of a run on a card, and its inputs.
pub(super) struct Load {
    pub(super) packet_bytes: u64,
    pub(super) messages: Messages,
    pub(super) interval: Interval,
    /// Bytes of a packet on the link.
    pub(super) wire_bytes: u64,
    pub(super) hpus: u64,
    /// The processors' clock.
    pub(super) clock: Frequency,
    pub(super) buffer_packets: u64,
    /// The delay of a credit back to the sender.
    pub(super) credit: Duration,
    /// Busy times of the card's resources over the whole run.
    pub(super) busy: Busy,
    /// Maximum messages for handlers in flight.
    pub(super) contexts: u64,
    /// Bus time of all packets for the host over that of the accepted ones; `busy` has only the latter.
    pub(super) for_host: f64,
    /// The busiest part of the host, and its load; none if no part takes packets.
    pub(super) host: Option<(String, f64)>,
    /// CPU time of the host; none if no part takes packets.
    pub(super) host_cpu: Option<Duration>,
    /// The load of the busiest port with the packets that the card sends by it; for cards with several ports.
    pub(super) port: Option<f64>,
    /// Packets that the card sent over the whole run.
    pub(super) sent: u64,
    /// Words that one handler at a time held, over the whole run.
    pub(super) words: Vec<HeldWord>,
    /// The most retried of the words that are not locks.
    pub(super) retried: Option<RetriedWord>,
    /// Whether handlers take words that others may have to wait for.
    pub(super) takes_words: bool,
    /// Whether the program has a payload handler.
    pub(super) payload_handler: bool,
    /// Pieces of memory that are in no level.
    pub(super) ideal: Vec<String>,
    /// Levels without waits of one access for another.
    pub(super) uncontended: Vec<&'static str>,
    /// The section of the spec with the cycles of ideal memory.
    pub(super) ideal_cycles: &'static str,
    /// The levels of memory that processors share, and the handlers' accesses, over the whole run.
    pub(super) levels: Vec<LevelUse>,
    /// The data caches before levels, over the whole run.
    pub(super) caches: Vec<CacheUse>,
    /// Busy time of the issue that threads share, the mean of all ports over the whole run.
    pub(super) issue: Option<Duration>,
    pub(super) statistics: HandlerStatistics,
    /// Lines that filled its instruction caches over the whole run.
    pub(super) code_lines: u64,
    /// Commands of handlers that it refused over the whole run.
    pub(super) refused_commands: Vec<RefusedCommand>,
    /// Words that handlers share in memory without a model of contention.
    pub(super) unmodelled: Option<UnmodelledRow>,
}

impl Load {
    /// Returns the work of a card with this spec and these handlers on its input.
    pub(super) fn of(
        input: Input,
        tested: &Tested<'_>,
        (card, before): (&OnHost, &SharedBefore),
        handlers: &Handlers,
    ) -> Load {
        let (hpu, link, processors) = (tested.hpu(), tested.link(), card.processors());
        let Input { packet_bytes, messages, interval } = input;
        let mut load = Load {
            packet_bytes,
            messages,
            interval,
            wire_bytes: packet_bytes + link.header,
            hpus: hpu.cores as u64,
            clock: hpu.clock,
            buffer_packets: u64::from(link.buffer),
            credit: link.latency,
            busy: card.busy(),
            contexts: u64::from(hpu.contexts),
            for_host: card.for_host(),
            host: None,
            host_cpu: card.cpu_time(),
            port: None,
            sent: card.sent(),
            words: processors.held_words(),
            retried: processors.retried_word(),
            takes_words: processors.takes_words(),
            payload_handler: handlers.has_payload_handler(),
            ideal: hpu.memories.ideal().map(|piece| piece.key().to_owned()).collect(),
            uncontended: hpu.memories.uncontended().map(Level::name).collect(),
            ideal_cycles: if hpu.core.overlap.is_some() { "hpu.overlap" } else { "hpu.cycles" },
            levels: processors.memory_levels(),
            caches: processors.data_caches(),
            issue: processors.issue_cycles().map(|cycles| hpu.clock.cycles(cycles)),
            statistics: processors.handler_statistics(),
            code_lines: processors.code_lines_filled(),
            refused_commands: processors.refused_commands(),
            unmodelled: before.unmodelled(processors, hpu, messages.total() * messages.packets_each),
        };
        load.host = card.host_work().map(|work| load.busiest(&work));
        load
    }

    /// Returns the busiest part of the host, by its work per frame for all frames that arrived for it.
    fn busiest(&self, work: &[HostWork]) -> (String, f64) {
        let load = |of: &HostWork| self.share(of.busy) * of.came as f64 / of.taken.max(1) as f64;
        let loads = work.iter().map(|of| (of.name.clone(), load(of)));
        loads.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
    }

    /// The cluster with the busiest DMA engine.
    pub(super) fn busiest_cluster(&self) -> Option<usize> {
        self.busy.movers.map(|movers| movers.cluster.0)
    }

    /// The scarcer slots of packets, on a card with clusters.
    pub(super) fn packet_slots(&self) -> Option<(&'static str, Occupied)> {
        let movers = self.busy.movers?;
        let of_clusters = ("hpu.packets.cluster_buffer", movers.cluster_buffer);
        let of_buffer = ("hpu.packets.buffer", movers.packet_buffer);
        Some(if of_clusters.1.needed > of_buffer.1.needed { of_clusters } else { of_buffer })
    }

    /// Returns the load of the contexts of messages, and the fraction of the time for which all were taken.
    pub(super) fn contexts(&self) -> (f64, f64) {
        let used = self.busy.contexts;
        (self.share(used.taken) / self.contexts.max(1) as f64, self.share(used.full))
    }

    /// Packets of the whole run.
    pub(super) const fn packets(&self) -> u64 {
        self.messages.total() * self.messages.packets_each
    }

    /// A time over that of the whole run at line rate.
    pub(super) fn share(&self, time: Duration) -> f64 {
        time.ps() as f64 / self.interval.times(self.packets()) as f64
    }

    /// The words that handlers have waited for. Others may not be locks.
    pub(super) fn locks(&self) -> impl Iterator<Item = &HeldWord> {
        self.words.iter().filter(|word| word.waits > 0)
    }

    /// Limits hand-overs to the available time, since no queue has grown: more waiting handlers would hand a lock over sooner.
    pub(super) fn without_queues(&mut self) {
        let all = self.interval.times(self.packets());
        for word in &mut self.words {
            let left = Duration::from_ps(all.saturating_sub(word.held.ps()));
            word.handed_over = word.handed_over.min(left);
        }
        if let Some(word) = &mut self.retried {
            let left = Duration::from_ps(all.saturating_sub(word.changing.ps()));
            word.handed_over = word.handed_over.min(left);
        }
    }

    /// Returns the word that handlers retried most often.
    pub(super) fn retry_row(&self) -> Option<RetryRow> {
        let RetriedWord { word, retried_at, retries, changing, handed_over } = self.retried.clone()?;
        let packets = self.packets() as f64;
        Some(RetryRow {
            word,
            retried_at,
            retries_per_packet: retries as f64 / packets,
            update_ns: changing.ps() as f64 / packets / 1000.0,
            handover_ns: handed_over.ps() as f64 / packets / 1000.0,
            load: self.contended(),
        })
    }

    /// Returns the words that handlers held longest, locks first.
    pub(super) fn lock_rows(&self) -> Vec<LockRow> {
        let mut rows: Vec<LockRow> = self.words.iter().map(|word| self.lock_row(word)).collect();
        rows.sort_by(|a, b| (b.waits > 0).cmp(&(a.waits > 0)).then(b.load.total_cmp(&a.load)));
        rows.truncate(LOCKS);
        rows
    }

    fn lock_row(&self, word: &HeldWord) -> LockRow {
        let of_packet = |time: Duration| time.ps() as f64 / self.packets() as f64;
        LockRow {
            word: word.word.clone(),
            acquired_at: word.acquired_line.clone(),
            released_at: word.released_line.clone(),
            waited_at: word.waited_at.clone(),
            waits: word.waits,
            held_ns: of_packet(word.held) / 1000.0,
            handover_ns: of_packet(word.handed_over) / 1000.0,
            load: self.lock(word),
            max_packets_per_s: 1e12 / of_packet(word.held).max(1.0),
        }
    }

    /// The load of a lock. During a hand-over no other handler has it.
    pub(super) fn lock(&self, word: &HeldWord) -> f64 {
        self.share(word.held + word.handed_over)
    }

    /// The load of the word that handlers change only if it is unchanged, and retry.
    pub(super) fn contended(&self) -> f64 {
        self.retried.as_ref().map_or(0.0, |word| self.share(word.changing + word.handed_over))
    }

    /// The load of the busiest bank of a level.
    pub(super) fn bank(&self, level: &LevelUse) -> f64 {
        self.share(level.busiest_busy)
    }

    /// The load of all processors from waits for a level's lines.
    pub(super) fn misses(&self, cache: &CacheUse) -> f64 {
        self.share(self.clock.cycles(cache.counters.waited)) / self.hpus as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_interval_loses_nothing() {
        let third = Interval::of_all(Duration::from_ps(100), 3);
        assert_eq!([1, 2, 3, 6].map(|packets| third.times(packets)), [33, 66, 100, 200]);
        assert!((third.ps() - 100.0 / 3.0).abs() < 1e-12);
        assert_eq!(Interval::of_each(Duration::from_ps(33)).times(3), 99);
        assert_eq!(Interval::of_all(Duration::ZERO, 3).times(2), 2);
    }
}
