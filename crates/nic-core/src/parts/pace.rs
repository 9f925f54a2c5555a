//! Departure times of a generator's packets: when they are due, or as soon after that as the link permits.

use nicety_types::{Duration, Time};

/// The due time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTime {
    /// As soon as the link is free.
    Wire,
    /// This long after the first packet, or as soon as the link is free after that.
    After {
        /// The time after the first packet.
        time: Duration,
        /// Duration of all packets up to this packet at their own rate, until the next packet would be due.
        lasts: Duration,
    },
}

impl DueTime {
    /// A due time after the first packet, from `time` and `lasts` in picoseconds.
    pub const fn after(time: u64, lasts: u64) -> DueTime {
        DueTime::After { time: Duration::from_ps(time), lasts: Duration::from_ps(lasts) }
    }
}

/// Packets offered to a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Number of packets.
    pub packets: u64,
    /// Total payload in bytes.
    pub bytes: u64,
    /// Duration of the packets at their own rate on an idle link, including the gap after the last packet.
    pub time: Duration,
    /// Delay of the last packet's end beyond `time`, or beyond its end on an idle link if that is later.
    pub late: Duration,
    /// Number of packets up to and including the last packet that left at its due time.
    pub on_time: u64,
    /// Duration of the later packets, at least half of all: at their own rate, and as sent.
    pub later: (Duration, Duration),
    /// Whether the due times of the packets demand a higher rate than that of the link.
    pub too_fast: bool,
    /// Sum of the packets' times on the link.
    pub wire: Duration,
}

/// The progress of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    begin: Time,
    /// End of the latest packet on the link, and its end on an idle link.
    free: Time,
    unhindered: Time,
    /// Duration of the packets at their own rate: up to the packet that is due, and up to the last sent packet.
    due: Duration,
    lasts: Duration,
    /// Marks at the last two packet counts that are powers of two: the end on the link, and the end at their rate.
    marks: [(Time, Time); 2],
    offered: Offered,
}

impl Pace {
    /// A generator before its first packet, which is due at `begin`.
    pub fn from(begin: Time) -> Pace {
        let (due, lasts) = (Duration::ZERO, Duration::ZERO);
        let marks = [(begin, begin); 2];
        Pace { begin, free: begin, unhindered: begin, due, lasts, marks, offered: Offered::default() }
    }

    /// Returns the time at which the next packet may request the link.
    pub fn next(&mut self, due: DueTime) -> Time {
        if let DueTime::After { time, lasts } = due {
            self.unhindered = self.unhindered.max(self.begin + time);
            self.due = lasts;
        }
        self.free.max(self.unhindered)
    }

    /// Records a packet that has the link from `now` on, for `interval`.
    pub fn sent(&mut self, now: Time, interval: Duration, bytes: u64) {
        self.offered.packets += 1;
        if now <= self.unhindered {
            self.offered.on_time = self.offered.packets;
        }
        self.unhindered += interval;
        self.free = now + interval;
        self.lasts = self.due;
        self.offered.bytes += bytes;
        self.offered.wire += interval;
        if self.offered.packets.is_power_of_two() {
            self.marks = [self.marks[1], (self.free, self.over())];
        }
    }

    /// The end of the packets so far, at their own rate.
    pub fn over(&self) -> Time {
        self.begin + self.lasts.max(self.offered.wire)
    }

    /// Ends the generator. Returns the counts and times of its packets.
    pub fn end(self) -> Offered {
        let over = self.over();
        let late = self.free.saturating_since(self.unhindered.max(over));
        let [(free, then), _] = self.marks;
        let later = (over.since(then), self.free.since(free));
        // Tolerates rounding: the packets' times are whole picoseconds.
        let most = Duration::from_ps(self.lasts.ps() + self.lasts.ps() / 1000);
        let too_fast = !self.lasts.is_zero() && self.offered.wire > most;
        Offered { time: over.since(self.begin), late, later, too_fast, ..self.offered }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stalled_packet_is_late() {
        let (at, ns) = (|ns| Time::ZERO + Duration::from_ns(ns), Duration::from_ns);
        let mut pace = Pace::from(at(100));
        assert_eq!(pace.next(DueTime::Wire), at(100));
        pace.sent(at(100), ns(10), 64);
        assert_eq!(pace.next(DueTime::After { time: ns(50), lasts: ns(70) }), at(150));
        // The link is free 7 ns later than it is due.
        pace.sent(at(157), ns(10), 64);
        assert_eq!(pace.next(DueTime::After { time: ns(50), lasts: ns(75) }), at(167));
        pace.sent(at(167), ns(20), 128);
        let offered = pace.end();
        assert_eq!((offered.packets, offered.bytes, offered.wire, offered.too_fast), (3, 256, ns(40), false));
        assert_eq!((offered.time, offered.late, offered.on_time), (ns(75), ns(7), 1));
        // After the first one, which has the link until 110 ns.
        assert_eq!(offered.later, (ns(65), ns(77)));
    }

    #[test]
    fn packets_last_until_the_next_one_would_be_due() {
        let (at, ns) = (|ns| Time::ZERO + Duration::from_ns(ns), Duration::from_ns);
        // Bursts of three packets of 10 ns every 100 ns. The receiver takes the second in half the burst's time.
        let mut pace = Pace::from(at(0));
        for (packet, begins) in [(0, 0), (1, 10), (2, 20), (3, 100), (4, 125), (5, 140)] {
            let lasts = ns(100 * (packet + 1) / 3);
            assert!(pace.next(DueTime::After { time: ns(100 * (packet / 3)), lasts }) <= at(begins));
            pace.sent(at(begins), ns(10), 64);
        }
        // A packet that is due and not sent does not count.
        pace.next(DueTime::After { time: ns(200), lasts: ns(234) });
        assert_eq!(pace.over(), at(200));
        let offered = pace.end();
        assert_eq!((offered.packets, offered.time, offered.late, offered.on_time), (6, ns(200), ns(0), 4));
        // After two packets of the first burst.
        assert_eq!(offered.later, (ns(134), ns(130)));
        // The rate of a capture may be above that of the wire.
        let mut pace = Pace::from(at(0));
        for _ in 0..2 {
            pace.next(DueTime::after(0, 0));
            pace.sent(pace.free, ns(10), 64);
        }
        assert_eq!((pace.end().time, pace.end().late, pace.end().too_fast), (ns(20), ns(0), false));
        pace.next(DueTime::after(25_000, 29_000));
        pace.sent(pace.free.max(at(25)), ns(10), 64);
        assert_eq!((pace.end().time, pace.end().too_fast), (ns(30), true));
    }
}
