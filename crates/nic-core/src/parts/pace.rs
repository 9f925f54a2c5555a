//! Departure times of a generator's packets. A packet leaves when it is due, or as soon after this time as the link
//! permits.

use nicety_types::{Duration, Time};

/// The due time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTime {
    /// The packet is due as soon as the link is free.
    Wire,
    /// The packet is due some time after the first packet.
    After {
        /// Time from the first packet until this packet is due.
        time: Duration,
        /// Duration of all packets up to this packet at the generator's rate, until the next packet would be due.
        lasts: Duration,
    },
}

impl DueTime {
    /// Returns a due time after the first packet, from `time` and `lasts` in picoseconds.
    pub const fn after(time: u64, lasts: u64) -> DueTime {
        DueTime::After { time: Duration::from_ps(time), lasts: Duration::from_ps(lasts) }
    }
}

/// The packets that a generator offered to a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Number of packets.
    pub packets: u64,
    /// Total payload of the packets in bytes.
    pub bytes: u64,
    /// Duration of the packets at the generator's rate on an idle link, including the gap after the last packet.
    pub time: Duration,
    /// Delay of the last packet's end, relative to `time` or to its end on an idle link, whichever is later.
    pub late: Duration,
    /// Number of packets up to the last packet that left at its due time, with this packet.
    pub on_time: u64,
    /// Duration of the later packets, at least half of all packets: first at the generator's rate, then as sent.
    pub later: (Duration, Duration),
    /// Whether the due times of the packets need a higher rate than the link has.
    pub too_fast: bool,
    /// Sum of the times of the packets on the link.
    pub wire: Duration,
}

/// The state of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    begin: Time,
    /// End of the last packet on the link, and its end on a link without other traffic.
    free: Time,
    unhindered: Time,
    /// Duration of the packets at the generator's rate: up to the packet that is now due, and up to the last packet
    /// sent.
    due: Duration,
    lasts: Duration,
    /// Time from the first packet until these two packets are due.
    next: Duration,
    latest: Duration,
    /// Values at the last two packet counts that are powers of two.
    marks: [Mark; 2],
    offered: Offered,
}

/// Values at a number of packets.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The packets' end on the link.
    free: Time,
    /// Their end at the generator's rate.
    over: Time,
    /// Time from the first packet until the last one of them was due.
    latest: Duration,
}

impl Pace {
    /// Returns a generator that has sent no packet. Its first packet is due at `begin`.
    pub fn from(begin: Time) -> Pace {
        let (due, lasts) = (Duration::ZERO, Duration::ZERO);
        let (next, latest) = (Duration::ZERO, Duration::ZERO);
        let marks = [Mark { free: begin, over: begin, latest }; 2];
        let offered = Offered::default();
        Pace { begin, free: begin, unhindered: begin, due, lasts, next, latest, marks, offered }
    }

    /// Returns the time at which the next packet may request the link.
    pub fn next(&mut self, due: DueTime) -> Time {
        if let DueTime::After { time, lasts } = due {
            self.unhindered = self.unhindered.max(self.begin + time);
            self.next = time;
            self.due = lasts;
        }
        self.free.max(self.unhindered)
    }

    /// Records a packet that occupies the link from `now` on, for `interval`.
    pub fn sent(&mut self, now: Time, interval: Duration, bytes: u64) {
        self.offered.packets += 1;
        if now <= self.unhindered {
            self.offered.on_time = self.offered.packets;
        }
        self.unhindered += interval;
        self.free = now + interval;
        (self.lasts, self.latest) = (self.due, self.next);
        self.offered.bytes += bytes;
        self.offered.wire += interval;
        if self.offered.packets.is_power_of_two() {
            let mark = Mark { free: self.free, over: self.over(), latest: self.latest };
            self.marks = [self.marks[1], mark];
        }
    }

    /// The end of the packets so far at the generator's rate.
    pub fn over(&self) -> Time {
        self.begin + self.lasts.max(self.offered.wire)
    }

    /// Ends the generator. Returns the counts and times of its packets.
    pub fn end(self) -> Offered {
        let over = self.over();
        let late = self.free.saturating_since(self.unhindered.max(over));
        let [mark, _] = self.marks;
        // Behind a long gap, the duration of few packets may be longer than that of all: it has the gap more often.
        let due = self.latest.saturating_sub(mark.latest);
        let later = (over.saturating_since(mark.over).max(due), self.free.since(mark.free));
        // The tolerance is for rounding, because the packets' times are whole picoseconds.
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
        // The link is free 7 ns after the packet is due.
        pace.sent(at(157), ns(10), 64);
        assert_eq!(pace.next(DueTime::After { time: ns(50), lasts: ns(75) }), at(167));
        pace.sent(at(167), ns(20), 128);
        let offered = pace.end();
        assert_eq!((offered.packets, offered.bytes, offered.wire, offered.too_fast), (3, 256, ns(40), false));
        assert_eq!((offered.time, offered.late, offered.on_time), (ns(75), ns(7), 1));
        // The later packets are those after the first one, which occupies the link until 110 ns.
        assert_eq!(offered.later, (ns(65), ns(77)));
    }

    #[test]
    fn later_packets_behind_a_long_gap_last_as_long_as_between_their_due_times() {
        let ns = Duration::from_ns;
        let mut pace = Pace::from(Time::ZERO);
        // The second packet is due 1000 ns after the first one, and further packets 10 ns after one another.
        for packet in 0..8_u64 {
            let time = if packet == 0 { 0 } else { 990 + 10 * packet };
            let lasts = (time * (packet + 1)).checked_div(packet).unwrap_or(10);
            let begins = pace.next(DueTime::After { time: ns(time), lasts: ns(lasts) });
            pace.sent(begins, ns(5), 64);
        }
        // The later packets are the four behind the first four.
        assert_eq!(pace.end().later, (ns(40), ns(40)));
    }

    #[test]
    fn packets_last_until_the_next_one_would_be_due() {
        let (at, ns) = (|ns| Time::ZERO + Duration::from_ns(ns), Duration::from_ns);
        // A burst has three packets of 10 ns, and a burst begins every 100 ns. Packets of the second burst leave late.
        let mut pace = Pace::from(at(0));
        for (packet, begins) in [(0, 0), (1, 10), (2, 20), (3, 100), (4, 125), (5, 140)] {
            let lasts = ns(100 * (packet + 1) / 3);
            assert!(pace.next(DueTime::After { time: ns(100 * (packet / 3)), lasts }) <= at(begins));
            pace.sent(at(begins), ns(10), 64);
        }
        // A packet that is due but not sent does not count.
        pace.next(DueTime::After { time: ns(200), lasts: ns(234) });
        assert_eq!(pace.over(), at(200));
        let offered = pace.end();
        assert_eq!((offered.packets, offered.time, offered.late, offered.on_time), (6, ns(200), ns(0), 4));
        // The later packets are those after the second packet of the first burst.
        assert_eq!(offered.later, (ns(134), ns(130)));
        // The rate of captured packets may be higher than the rate of the link.
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
