//! When the packets of a generator leave: as they are due, or as soon after that as the link lets them.

use nicety_types::{Duration, Time};

/// When a packet is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// As soon as the link is free.
    Wire,
    /// So long after the first one, or as soon as the link is free then.
    After {
        /// That time.
        time: Duration,
        /// How long the packets up to it last: until the next one would be due, at their rate.
        lasts: Duration,
    },
}

impl Due {
    /// Both times in picoseconds.
    pub const fn after(time: u64, lasts: u64) -> Due {
        Due::After { time: Duration::from_ps(time), lasts: Duration::from_ps(lasts) }
    }
}

/// Packets that were offered to a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// Number of packets.
    pub packets: u64,
    /// Their payload.
    pub bytes: u64,
    /// How long they take at their rate, with the gap behind the last one: on a link that nothing holds up.
    pub time: Duration,
    /// How much later than that the link was free.
    pub late: Duration,
    /// Packets up to the last one that left as soon as it was due: nothing held it up.
    pub on_time: u64,
    /// How long the later half of them, at least, takes at its rate, and took until the link was free.
    pub later: (Duration, Duration),
    /// Whether they were to come faster than the link takes them, at times of their own.
    pub too_fast: bool,
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
    /// How long packets last at their rate: with the one that is due, and those sent.
    due: Duration,
    lasts: Duration,
    /// When the link was free behind two numbers of packets that are powers of two, the latest one last, and when they are over.
    marks: [(Time, Time); 2],
    offered: Offered,
}

impl Pace {
    /// Nothing is sent yet, and the first packet is due from then on.
    pub fn from(begin: Time) -> Pace {
        let (due, lasts) = (Duration::ZERO, Duration::ZERO);
        let marks = [(begin, begin); 2];
        Pace { begin, free: begin, unhindered: begin, due, lasts, marks, offered: Offered::default() }
    }

    /// When the next packet may ask for the link.
    pub fn next(&mut self, due: Due) -> Time {
        if let Due::After { time, lasts } = due {
            self.unhindered = self.unhindered.max(self.begin + time);
            self.due = lasts;
        }
        self.free.max(self.unhindered)
    }

    /// It has the link from `now` on, for `interval`.
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

    /// When the packets so far are over at their rate.
    pub fn over(&self) -> Time {
        self.begin + self.lasts.max(self.offered.wire)
    }

    /// What was offered.
    pub fn end(self) -> Offered {
        let over = self.over();
        let late = self.free.saturating_since(self.unhindered.max(over));
        let [(free, then), _] = self.marks;
        let later = (over.since(then), self.free.since(free));
        // Their times are whole picoseconds.
        let most = Duration::from_ps(self.lasts.ps() + self.lasts.ps() / 1000);
        let too_fast = !self.lasts.is_zero() && self.offered.wire > most;
        Offered { time: over.since(self.begin), late, later, too_fast, ..self.offered }
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
        assert_eq!(pace.next(Due::After { time: ns(50), lasts: ns(70) }), at(150));
        // The link is free 7 ns later than it is due.
        pace.sent(at(157), ns(10), 64);
        assert_eq!(pace.next(Due::After { time: ns(50), lasts: ns(75) }), at(167));
        pace.sent(at(167), ns(20), 128);
        let offered = pace.end();
        assert_eq!((offered.packets, offered.bytes, offered.wire, offered.too_fast), (3, 256, ns(40), false));
        assert_eq!((offered.time, offered.late, offered.on_time), (ns(75), ns(7), 1));
        // Behind the first one, which has the link until 110 ns.
        assert_eq!(offered.later, (ns(65), ns(77)));
    }

    #[test]
    fn packets_last_until_the_next_one_would_be_due() {
        let (at, ns) = (|ns| Time::ZERO + Duration::from_ns(ns), Duration::from_ns);
        // Bursts of three packets of 10 ns every 100 ns, the second of which the receiver takes in half the time that the burst has.
        let mut pace = Pace::from(at(0));
        for (packet, begins) in [(0, 0), (1, 10), (2, 20), (3, 100), (4, 125), (5, 140)] {
            let lasts = ns(100 * (packet + 1) / 3);
            assert!(pace.next(Due::After { time: ns(100 * (packet / 3)), lasts }) <= at(begins));
            pace.sent(at(begins), ns(10), 64);
        }
        // One that is due and does not come counts for nothing.
        pace.next(Due::After { time: ns(200), lasts: ns(234) });
        assert_eq!(pace.over(), at(200));
        let offered = pace.end();
        assert_eq!((offered.packets, offered.time, offered.late, offered.on_time), (6, ns(200), ns(0), 4));
        // Behind two packets of the first burst.
        assert_eq!(offered.later, (ns(134), ns(130)));
        // The wire is what the rate of a capture may be above.
        let mut pace = Pace::from(at(0));
        for _ in 0..2 {
            pace.next(Due::after(0, 0));
            pace.sent(pace.free, ns(10), 64);
        }
        assert_eq!((pace.end().time, pace.end().late, pace.end().too_fast), (ns(20), ns(0), false));
        pace.next(Due::after(25_000, 29_000));
        pace.sent(pace.free.max(at(25)), ns(10), 64);
        assert_eq!((pace.end().time, pace.end().too_fast), (ns(30), true));
    }
}
