//! The demand of packets at the line rate on a card: busy time of each part for all packets, over their arrival time.

use super::growth::GrowthRow;
use super::load::Load;
use super::row::Loads;
use nicety::Duration;

/// A run that shows the demand of packets. After losses, the handled packets have another mix than the offered ones, since a full
/// buffer takes more of the long ones. Then a run without loss shows the demand of the offered packets.
#[derive(Clone, Copy)]
pub(super) struct Demand<'l> {
    pub(super) load: &'l Load,
    /// Total time for which handlers held processors for `packets` packets.
    pub(super) held: Duration,
    /// Growth of that time during the run: then the last packets show the demand of the next ones.
    pub(super) growth: Option<GrowthRow>,
    pub(super) packets: u64,
    /// The senders' rate in the second half of the run, over their intended rate.
    pub(super) sent_fraction: f64,
}

impl Demand<'_> {
    /// The loads of all parts at the line rate.
    pub(super) fn loads(&self) -> Loads {
        let load = self.load;
        Loads {
            hpus: self.hpus(),
            matching: load.share(load.busy.matching),
            link: load.port.unwrap_or_else(|| load.share(load.busy.link)),
            bus_to_card: load.share(load.busy.bus_to_card) * load.for_host,
            bus_to_host: load.share(load.busy.bus_to_host) * load.for_host,
            instruction_issue: load.issue.map(|busy| load.share(busy)),
            send_engine: load.busy.send_engine.map(|busy| load.share(busy)),
            packet_writer: load.busy.movers.map(|movers| load.share(movers.writer)),
            cluster_dma: load.busy.movers.map(|movers| load.share(movers.cluster.1)),
            packet_sender: load.busy.movers.map(|movers| load.share(movers.sender)),
            command_engine: load
                .busy
                .movers
                .and_then(|movers| movers.engine)
                .map(|(_, held)| load.share(held)),
            memory_channel: load
                .busy
                .movers
                .and_then(|movers| movers.channel)
                .map(|(_, busy)| load.share(busy)),
            packets_in_flight: load.busy.movers.map(|movers| load.share(movers.in_flight.needed)),
            packet_slots: load.packet_slots().map(|(_, held)| load.share(held.needed)),
            host: load.host.as_ref().map(|(_, load)| *load),
            lock: load.locks().map(|word| load.lock(word)).fold(0.0, f64::max),
            contended_word: load.contended(),
            memory_bank: load.levels.iter().map(|level| load.bank(level)).fold(0.0, f64::max),
        }
    }

    /// The loads of parts at work: the bus without packets that the host dropped.
    pub(super) fn loads_at_work(&self) -> Loads {
        let (loads, for_host) = (self.loads(), self.load.for_host);
        Loads {
            bus_to_card: loads.bus_to_card / for_host,
            bus_to_host: loads.bus_to_host / for_host,
            ..loads
        }
    }

    /// Handler core time per packet.
    pub(super) fn handler_ps(&self) -> f64 {
        self.held.ps() as f64 / self.packets as f64
    }

    /// The time of `packets` packets at the line rate.
    fn time(&self) -> u64 {
        self.load.interval.times(self.packets)
    }

    fn hpus(&self) -> f64 {
        self.held_in_the_end() / (self.time() * self.load.hpus) as f64
    }

    /// Busy handler cores at the line rate.
    pub(super) fn hpus_needed(&self) -> u64 {
        match self.growth {
            None => self.held.ps().div_ceil(self.time()),
            Some(_) => (self.held_in_the_end() / self.time() as f64).ceil() as u64,
        }
    }

    /// The time for which handlers would hold processors if all packets were like the last ones.
    fn held_in_the_end(&self) -> f64 {
        self.held.ps() as f64 * self.growth.map_or(1.0, |growth| growth.times())
    }

    /// The share of the processors' load that is waits for lines of data caches.
    pub(super) fn misses(&self) -> f64 {
        self.load.caches.iter().map(|cache| self.load.misses(cache)).sum()
    }

    /// The fraction of the line rate that an unlimited number of handler cores would reach.
    pub(super) fn reachable(&self) -> f64 {
        let (load, loads) = (self.load, self.loads());
        // More processors may hand a lock over sooner.
        let held = load.locks().map(|word| load.share(word.held)).fold(0.0, f64::max);
        let changing = load.retried.as_ref().map_or(0.0, |word| load.share(word.changing));
        let others = [
            loads.matching,
            loads.link,
            loads.bus_to_card,
            loads.bus_to_host,
            held,
            changing,
            loads.memory_bank,
            loads.send_engine.unwrap_or_default(),
            loads.packet_writer.unwrap_or_default(),
            loads.cluster_dma.unwrap_or_default(),
            loads.packet_sender.unwrap_or_default(),
            loads.command_engine.unwrap_or_default(),
            loads.memory_channel.unwrap_or_default(),
            loads.packets_in_flight.unwrap_or_default(),
            loads.packet_slots.unwrap_or_default(),
            loads.host.unwrap_or_default(),
        ];
        1.0 / others.into_iter().fold(1.0, f64::max)
    }
}
