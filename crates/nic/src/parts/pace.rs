//! When the packets of a generator leave: as they are due, or as soon after that as the link lets them.

use nicety_types::{Duration, Time};

/// When a packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// As soon as the link is free.
    Wire,
    /// So long after the first one, or as soon as the link is free then.
    After(Duration),
}

/// Packets that were offered to a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Number of packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// How long they take on a link that nothing holds up.
    pub time: Duration,
    /// How much later than that the last one was sent.
    pub late: Duration,
    /// How long the link is occupied by all of them.
    pub wire: Duration,
}

/// The course of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    begin: Time,
    /// When the link is free after the latest packet, and when it would be if nothing had held it up.
    free: Time,
    unhindered: Time,
    offered: Offered,
}

impl Pace {
    /// Nothing is sent yet, and the first packet is due from then on.
    pub fn from(begin: Time) -> Pace {
        Pace { begin, free: begin, unhindered: begin, offered: Offered::default() }
    }

    /// When the next packet may ask for the link.
    pub fn next(&mut self, due: Due) -> Time {
        if let Due::After(time) = due {
            self.unhindered = self.unhindered.max(self.begin + time);
        }
        self.free.max(self.unhindered)
    }

    /// It has the link from `now` on, for `interval`.
    pub fn sent(&mut self, now: Time, interval: Duration, bytes: u64) {
        self.unhindered += interval;
        self.free = now + interval;
        self.offered.packets += 1;
        self.offered.bytes += bytes;
        self.offered.wire += interval;
    }

    /// What was offered.
    pub fn end(self) -> Offered {
        let Pace { begin, free, unhindered, offered } = self;
        Offered { time: unhindered.since(begin), late: free.saturating_since(unhindered), ..offered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_packet_up_makes_it_late() {
        let (at, ns) = (|ns| Time::ZERO + Duration::from_ns(ns), Duration::from_ns);
        let mut pace = Pace::from(at(100));
        assert_eq!(pace.next(Due::Wire), at(100));
        pace.sent(at(100), ns(10), 64);
        assert_eq!(pace.next(Due::After(ns(50))), at(150));
        // The link is free 7 ns later than it is due.
        pace.sent(at(157), ns(10), 64);
        assert_eq!(pace.next(Due::Wire), at(167));
        pace.sent(at(167), ns(20), 128);
        let offered = Offered { packets: 3, bytes: 256, time: ns(80), late: ns(7), wire: ns(40) };
        assert_eq!(pace.end(), offered);
    }
}
