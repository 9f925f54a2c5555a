//! Drops, pauses and the busiest port of a network, after a run with traffic.

use super::meter::sender as sender_of;
use nicety::{Drops, NetworkStatistics, Place};
use nicety_nic_core::parts::Offered;
use nicety_types::Duration;

/// The load of the card's busiest output port, relative to the time of the traffic that arrives by it. The switch that merges
/// ports has one port for each host, by rank.
pub(super) fn busiest_port(network: &NetworkStatistics, each: &[Offered]) -> f64 {
    let ports = network.switches.first().map_or(&[][..], |switch| &switch.ports);
    let load = |(port, offered): (u32, &Offered)| {
        let busy = ports.get(sender_of(port).0 as usize).map_or(0, |port| port.busy.ps());
        busy as f64 / offered.time.ps().max(1) as f64
    };
    (0..).zip(each).map(load).fold(0.0, f64::max)
}

/// Frames that the card sent, dropped at a full output port.
pub(super) fn dropped_on_the_way_out(network: &NetworkStatistics) -> u64 {
    let others = network.queues.iter().filter(|queue| queue.reason != Drops::Card);
    others.map(|queue| queue.dropped_packets).sum()
}

/// Frames that the card sent, dropped at this full output port.
pub(super) fn dropped_before(network: &NetworkStatistics, port: u32) -> u64 {
    let place = Place::Host(sender_of(port).0);
    let own = network.queues.iter().filter(|queue| queue.reason != Drops::Card && queue.peer == place);
    own.map(|queue| queue.dropped_packets).sum()
}

/// Packets dropped by the card's full packet buffer.
pub(super) fn dropped(network: &NetworkStatistics) -> u64 {
    let own = network.queues.iter().filter(|queue| queue.reason == Drops::Card);
    own.map(|queue| queue.dropped_packets).sum()
}

/// Pause frames that the card sent.
pub(super) fn pauses_of_card(network: &NetworkStatistics) -> u64 {
    let own = network.queues.iter().filter(|queue| queue.reason == Drops::Card);
    own.map(|queue| queue.pauses_sent).sum()
}

/// Time for which the senders were paused, in nanoseconds.
pub(super) fn paused(network: &NetworkStatistics) -> f64 {
    network.queues.iter().map(|queue| queue.paused).sum::<Duration>().ns()
}
