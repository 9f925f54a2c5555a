//! Streams of beats between the card's engines and its memories: the cycles of their beats.
//!
//! This follows PsPIN's interconnect (`nhi_xbar.sv`, `cluster_noc.sv`):
//!
//! - One read channel and one write channel lead to the L1 of all clusters, each with one beat a cycle.
//! - A cluster's port moves one beat a cycle in either direction.
//! - Packets in L2 have a read channel and a write channel on this side. Arriving packets use the same write channel.
//! - Handler memory has two channels as well.

use crate::pspin::lanes::{Lane, Target, Transactions};
use crate::pspin::ports::Ports;
use crate::spec::{InterconnectSpec, pspin_map as map};
use std::cell::{Cell, RefCell};

/// The users of the channels. Each has its own AXI identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// Reads for sends.
    Sends,
    /// Reads of DMA to the host.
    ToHost,
    /// Writes of DMA from the host.
    FromHost,
}

/// Beats of a transfer at a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beats {
    /// The cycles of the first and of the last beat.
    pub first: u64,
    /// The cycle of the last beat.
    pub last: u64,
}

impl Beats {
    /// Returns consecutive beats from cycle `first` on. Without beats, the last is before the first.
    pub const fn from(first: u64, beats: u64) -> Beats {
        Beats { first, last: (first + beats).saturating_sub(1) }
    }
}

/// The channels of the card's memories, and the engines' transactions.
pub struct Streams {
    /// Boxed, because most cards have none.
    limits: Option<Box<Limits>>,
    /// The time at which the sender may move another beat.
    sender: Cell<u64>,
    /// Beats moved by the sender.
    sent: Cell<u64>,
    /// The time at which the host's port may move another beat: to the host, and from it.
    to_host: Cell<u64>,
    from_host: Cell<u64>,
}

/// The channels and transactions that engines share.
struct Limits {
    clusters_read: Lane,
    clusters_write: Lane,
    packets_read: Lane,
    packets_write: Lane,
    handlers_read: Lane,
    handlers_write: Lane,
    transactions: [RefCell<Transactions>; 3],
}

/// Returns the memory of an address on a card with `clusters` clusters.
pub fn target(address: u32, clusters: usize) -> Target {
    match address.checked_sub(map::L1).map(|offset| (offset / map::L1_EACH) as usize) {
        Some(cluster) if cluster < clusters => Target::Cluster(cluster),
        _ if (map::L2_PACKETS..map::L2_PACKETS + map::L2_ROOM).contains(&address) => Target::Packets,
        _ => Target::Handlers,
    }
}

impl Streams {
    pub(crate) fn new(spec: Option<&InterconnectSpec>) -> Streams {
        let limits = spec.map(|spec| {
            Box::new(Limits {
                clusters_read: Lane::default(),
                clusters_write: Lane::default(),
                packets_read: Lane::default(),
                packets_write: Lane::default(),
                handlers_read: Lane::default(),
                handlers_write: Lane::default(),
                transactions: [(); 3].map(|()| RefCell::new(Transactions::new(spec.transactions, spec.turn))),
            })
        });
        let never = || Cell::new(0);
        Streams { limits, sender: never(), sent: never(), to_host: never(), from_host: never() }
    }

    /// Moves the beats of a transfer at `address` in a memory, from cycle `from` on. `ports` are those of the target
    /// cluster, if any.
    pub fn transfer(
        &self,
        user: User,
        (target, address): (Target, u32),
        from: u64,
        beats: u64,
        ports: Option<&Ports>,
    ) -> Beats {
        let from = if user == User::Sends { from.max(self.sender.get()) } else { from };
        let moved = match (&self.limits, beats) {
            (_, 0) => Beats::from(from, 0),
            (Some(limits), _) => limits.transfer(user, (target, address), from, beats, ports),
            (None, _) => {
                if let Some(ports) = ports {
                    ports.move_at(from, address, beats * ports.beat());
                }
                Beats::from(from, beats)
            }
        };
        if user == User::Sends && beats > 0 {
            self.sender.set(moved.last + 1);
            self.sent.set(self.sent.get() + beats);
        }
        moved
    }

    /// Writes an arriving packet to the packet buffer. Returns its beats. None where nothing else is written there.
    pub(crate) fn write_packet(&self, now: u64, beats: u64) -> Option<Beats> {
        let lane = &self.limits.as_ref()?.packets_write;
        lane.forget_before(now);
        Some(match lane.move_beats(now, beats) {
            Some(last) => Beats { first: now, last },
            None => Beats::from(now, 0),
        })
    }

    /// Holds up arriving packets from cycle `from` on, behind a write to the packet buffer with data that arrive at
    /// `until`. Writes follow the order of their addresses.
    pub fn hold_packets(&self, target: Target, from: u64, until: u64) {
        if let Some(limits) = &self.limits
            && target == Target::Packets
        {
            (from..until).filter(|&cycle| !limits.packets_write.is_taken(cycle)).for_each(|cycle| {
                limits.packets_write.take(cycle);
            });
        }
    }

    /// Returns consecutive beats at the host's port, in the order of the calls.
    pub fn host(&self, to_host: bool, from: u64, beats: u64) -> Beats {
        if self.limits.is_none() {
            return Beats::from(from, beats);
        }
        let free = if to_host { &self.to_host } else { &self.from_host };
        let moved = Beats::from(from.max(free.get()), beats);
        free.set(moved.first + beats);
        moved
    }

    /// The busiest channel of the card's memories, and its cycles with a beat; none without limits. The write channel of the packet buffer is
    /// that of the packet writer, which has its own figure.
    pub(crate) fn busiest_channel(&self) -> Option<(&'static str, u64)> {
        let limits = self.limits.as_ref()?;
        let channels = [
            ("reads of the clusters' L1", &limits.clusters_read),
            ("writes of the clusters' L1", &limits.clusters_write),
            ("reads of the packet buffer", &limits.packets_read),
            ("reads of handler memory", &limits.handlers_read),
            ("writes of handler memory", &limits.handlers_write),
        ];
        channels.map(|(name, lane)| (name, lane.busy())).into_iter().rev().max_by_key(|(_, busy)| *busy)
    }

    /// Returns the number of beats of all sends.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl Limits {
    pub fn transfer(
        &self,
        user: User,
        (target, address): (Target, u32),
        from: u64,
        beats: u64,
        ports: Option<&Ports>,
    ) -> Beats {
        let writes = user == User::FromHost;
        let lane = match (target, writes) {
            (Target::Cluster(_), false) => &self.clusters_read,
            (Target::Cluster(_), true) => &self.clusters_write,
            (Target::Packets, false) => &self.packets_read,
            (Target::Packets, true) => &self.packets_write,
            (Target::Handlers, false) => &self.handlers_read,
            (Target::Handlers, true) => &self.handlers_write,
        };
        lane.forget_before(from);
        let mut transactions = self.transactions[user as usize].borrow_mut();
        let begin = transactions.next(from, target);
        let mut first = None;
        let mut next = begin;
        for beat in 0..beats {
            let is_free = |cycle: &u64| {
                !lane.is_taken(*cycle) && ports.is_none_or(|ports| ports.is_free(*cycle, address, beat))
            };
            let cycle = (next..).find(is_free).expect("few cycles are taken");
            lane.take(cycle);
            if let Some(ports) = ports {
                ports.take(cycle, address, beat);
            }
            first.get_or_insert(cycle);
            next = cycle + 1;
        }
        transactions.ends(target, next - 1);
        Beats { first: first.unwrap_or(begin), last: next - 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::PacketsSpec;
    use proptest::prelude::*;

    const SPEC: InterconnectSpec =
        InterconnectSpec { transactions: 2, turn: 2, burst: 4096, burst_gap: 0, host_bursts: 2 };

    pub fn ports() -> Ports {
        Ports::new(&PacketsSpec { bank_groups: 4, ..PacketsSpec::of_tests() })
    }

    fn beats(first: u64, last: u64) -> Beats {
        Beats { first, last }
    }

    #[test]
    fn sends_and_dma_to_the_host_share_one_read_channel() {
        let (streams, ports) = (Streams::new(Some(&SPEC)), [ports(), ports()]);
        let at = |cluster: usize| (Target::Cluster(cluster), map::L1 + cluster as u32 * map::L1_EACH);
        // 16 beats of a send from cluster 0, and 16 of a DMA to the host from cluster 1: one channel, 32 cycles.
        assert_eq!(streams.transfer(User::Sends, at(0), 10, 16, Some(&ports[0])), beats(10, 25));
        assert_eq!(streams.transfer(User::ToHost, at(1), 10, 16, Some(&ports[1])), beats(26, 41));
        // Reads from L2 use another channel.
        let l2 = (Target::Packets, map::L2_PACKETS);
        assert_eq!(
            streams.transfer(User::Sends, l2, 10, 16, None),
            beats(27, 42),
            "the send before ends at 25 + 2"
        );
        assert_eq!(streams.sent(), 32);
        assert_eq!(streams.busiest_channel(), Some(("reads of the clusters' L1", 32)));
        assert_eq!(Streams::new(None).busiest_channel(), None);
    }

    #[test]
    fn a_clusters_port_is_one_stream_of_reads_and_writes() {
        let (streams, ports) = (Streams::new(Some(&SPEC)), ports());
        let at = |offset: u32| (Target::Cluster(0), map::L1 + offset);
        // Data from the host uses the write channel. Both directions use the cluster's port: 2 n cycles for n beats
        // in each direction.
        assert_eq!(streams.transfer(User::FromHost, at(0), 100, 16, Some(&ports)), beats(100, 115));
        assert_eq!(streams.transfer(User::Sends, at(0), 100, 16, Some(&ports)), beats(116, 131));
        // A cluster's DMA occupies groups of banks. A beat that needs one of them is a cycle later: 131 + 1 for group
        // 0, and 133 for 1.
        ports.move_at(132, 0, 1);
        assert_eq!(streams.transfer(User::Sends, at(0), 132, 2, Some(&ports)), beats(133, 134));
    }

    #[test]
    fn packets_that_come_in_share_their_channel_with_dma_from_the_host() {
        let streams = Streams::new(Some(&SPEC));
        let l2 = (Target::Packets, map::L2_PACKETS);
        // Its address goes out at 10, and its data arrive at 19. Packets wait for both.
        assert_eq!(streams.transfer(User::FromHost, l2, 19, 2, None), beats(19, 20));
        streams.hold_packets(Target::Packets, 10, 19);
        assert_eq!(streams.write_packet(9, 3), Some(beats(9, 22)), "9, 21 and 22");
        assert_eq!(streams.write_packet(12, 1), Some(beats(12, 23)));
        assert_eq!(Streams::new(None).write_packet(9, 3), None);
    }

    #[test]
    fn short_sends_out_of_alternating_clusters_are_one_in_two_cycles() {
        let (streams, ports) = (Streams::new(Some(&SPEC)), [ports(), ports()]);
        let send = |cluster: usize| {
            let address = map::L1 + cluster as u32 * map::L1_EACH;
            streams
                .transfer(User::Sends, (Target::Cluster(cluster), address), 0, 1, Some(&ports[cluster]))
                .last
        };
        assert_eq!([send(0), send(0), send(0)], [0, 1, 2], "one a cycle out of one cluster");
        assert_eq!([send(1), send(0), send(1)], [4, 6, 8]);
    }

    #[test]
    fn without_limits_only_the_senders_beats_follow_each_other() {
        let streams = Streams::new(None);
        let at = (Target::Cluster(0), map::L1);
        assert_eq!(streams.transfer(User::Sends, at, 5, 4, None), beats(5, 8));
        assert_eq!(streams.transfer(User::Sends, at, 5, 4, None), beats(9, 12));
        assert_eq!(streams.transfer(User::ToHost, at, 5, 4, None), beats(5, 8));
        assert_eq!([streams.host(true, 3, 2), streams.host(true, 3, 2)], [beats(3, 4), beats(3, 4)]);
    }

    #[test]
    fn memories_by_address() {
        assert_eq!(target(map::L1, 4), Target::Cluster(0));
        assert_eq!(target(map::pad(3), 4), Target::Cluster(3));
        assert_eq!(target(map::pad(3), 2), Target::Handlers);
        assert_eq!(target(map::L2_PACKETS, 4), Target::Packets);
        assert_eq!(target(map::L2_PACKETS - 1, 4), Target::Handlers);
    }

    proptest! {
        /// A channel and a cluster's port move at most one beat a cycle. The beats of a user keep their order.
        #[test]
        fn no_channel_moves_two_beats_in_a_cycle(
            transfers in prop::collection::vec((0usize..3, 0usize..2, 0u64..60, 1u64..20, 0u32..8), 1..25),
        ) {
            let (streams, ports) = (Streams::new(Some(&SPEC)), [ports(), ports()]);
            let mut last = [0; 3];
            let mut total = 0;
            let mut end = 0;
            for (user, cluster, from, beats, at) in transfers {
                let user = [User::Sends, User::ToHost, User::FromHost][user];
                let address = map::L1 + cluster as u32 * map::L1_EACH + 64 * at;
                let moved =
                    streams.transfer(user, (Target::Cluster(cluster), address), from, beats, Some(&ports[cluster]));
                prop_assert!(moved.first >= from && moved.last >= moved.first + beats - 1);
                prop_assert!(last[user as usize] == 0 || moved.first > last[user as usize]);
                last[user as usize] = moved.last;
                total += beats;
                end = end.max(moved.last);
            }
            let limits = streams.limits.as_ref().unwrap();
            let taken = |lane: &Lane| (0..=end).filter(|&cycle| lane.is_taken(cycle)).count() as u64;
            prop_assert_eq!(taken(&limits.clusters_read) + taken(&limits.clusters_write), total);
            let port = |ports: &Ports| (0..=end).filter(|&cycle| ports.is_busy(cycle)).count() as u64;
            prop_assert_eq!(port(&ports[0]) + port(&ports[1]), total);
        }
    }
}
