//! Occupancy of the limited resources of a card with clusters: places of a cluster, and slots of buffers.
//!
//! A packet waits in its places for the copy and for a processor. The needed time excludes these waits. It gives the
//! number of places that the arriving packets need, however long copies and processors take.

use crate::Occupied;
use crate::handlers::disposition::Stay;
use crate::spec::PacketsSpec;
use nicety_types::{Duration, Time};

/// Sums over all runs that have left their places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stays {
    in_flight: Sum,
    cluster: Slots,
    buffer: Slots,
}

/// Time times places, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    needed: u128,
    taken: u128,
}

/// The same for bytes in slots, and the number of packets that have been in them.
#[derive(Clone, Copy, Debug, Default)]
struct Slots {
    of_bytes: Sum,
    packets: u64,
    bytes: u64,
}

/// The times of a run that leaves its places.
pub(crate) struct Leaves {
    pub(crate) stay: Stay,
    pub(crate) now: Time,
    /// Bytes of its packet.
    pub(crate) bytes: u64,
    /// The time of a copy of the packet without waits, and the time before that in the packet buffer.
    pub(crate) copy: Duration,
    pub(crate) before: Duration,
}

impl Sum {
    fn add(&mut self, needed: Duration, taken: Duration, places: u64) {
        self.needed += u128::from(needed.min(taken).ps()) * u128::from(places);
        self.taken += u128::from(taken.ps()) * u128::from(places);
    }

    fn over(self, places: u64) -> Occupied {
        let each = |sum: u128| Duration::from_ps((sum / u128::from(places.max(1))) as u64);
        Occupied { needed: each(self.needed), taken: each(self.taken) }
    }
}

impl Slots {
    fn add(&mut self, needed: Duration, taken: Duration, bytes: u64) {
        self.of_bytes.add(needed, taken, bytes);
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + bytes);
    }

    /// Returns the mean over `buffers` buffers of `bytes` bytes each. Packets are contiguous: the rest behind the
    /// last one that fits is unusable.
    fn over(self, buffers: u64, bytes: u64) -> Occupied {
        let mean = self.bytes.checked_div(self.packets).filter(|&mean| mean > 0).unwrap_or(1);
        self.of_bytes.over(buffers * (bytes / mean).max(1) * mean)
    }
}

impl Stays {
    pub(crate) fn leave(&mut self, spec: &PacketsSpec, run: &Leaves) {
        let Leaves { stay, now, bytes, copy, before } = *run;
        let needed = now.since(stay.began) + copy;
        self.in_flight.add(needed, now.since(stay.assigned), 1);
        if bytes > 0 {
            let bytes = bytes.next_multiple_of(spec.slot);
            self.cluster.add(needed, now.since(stay.placed), bytes);
            self.buffer.add(needed + before, now.since(stay.admitted), bytes);
        }
    }

    /// Returns the occupancy of places of clusters, of slots of their memories, and of slots of the packet buffer.
    pub(crate) fn held(&self, spec: &PacketsSpec, clusters: u64) -> [Occupied; 3] {
        [
            self.in_flight.over(clusters * u64::from(spec.in_flight)),
            self.cluster.over(clusters, spec.cluster_buffer),
            self.buffer.over(1, spec.buffer),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_needed_without_waits() {
        let spec = PacketsSpec { in_flight: 2, cluster_buffer: 300, ..PacketsSpec::of_tests() };
        let (at, ps) = (Time::from_ps, Duration::from_ps);
        let mut stays = Stays::default();
        // It is in the cluster for 210 ps. It waits 50 before the copy of 20, and 40 between the copy and its
        // handler.
        let stay = Stay { admitted: at(100), assigned: at(190), placed: at(240), began: at(300) };
        let run = Leaves { stay, now: at(400), bytes: 100, copy: ps(20), before: ps(15) };
        stays.leave(&spec, &run);
        // A completion handler has no packet.
        let completes = Leaves { bytes: 0, copy: ps(16), before: ps(0), ..run };
        stays.leave(&spec, &completes);
        let [in_flight, cluster, buffer] = stays.held(&spec, 3);
        assert_eq!(in_flight, Occupied { needed: ps((120 + 116) / 6), taken: ps((210 + 210) / 6) });
        // 128 bytes: two packets fit in each of three memories, and 32 in the packet buffer.
        assert_eq!(cluster, Occupied { needed: ps(120 / 6), taken: ps(160 / 6) });
        assert_eq!(buffer, Occupied { needed: ps(135 / 32), taken: ps(300 / 32) });
        // At most the taken time: its packet was in the buffer long before its handler was ready.
        stays = Stays::default();
        stays.leave(&spec, &Leaves { stay: Stay { admitted: at(290), ..stay }, before: ps(500), ..run });
        assert_eq!(stays.held(&spec, 3)[2], Occupied { needed: ps(110 / 32), taken: ps(110 / 32) });
    }
}
