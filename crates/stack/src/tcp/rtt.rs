//! Round-trip times, and the resulting retransmission timeout (RFC 6298).

use nicety_types::Duration;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    least: Duration,
    most: Duration,
    /// The smoothed round-trip time (SRTT), and its variation (RTTVAR).
    smooth: Option<(Duration, Duration)>,
    /// The shortest measured round-trip time.
    shortest: Option<Duration>,
    timeout: Duration,
    /// Number of doublings of the timeout since the last measurement.
    backoff: u32,
}

impl Rtt {
    /// Before the first measurement, the timeout is `first`.
    pub fn new(first: Duration, least: Duration, most: Duration) -> Rtt {
        let most = most.max(least);
        Rtt { least, most, smooth: None, shortest: None, timeout: first.clamp(least, most), backoff: 0 }
    }

    pub fn smooth(&self) -> Option<Duration> {
        self.smooth.map(|(smooth, _)| smooth)
    }

    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// Records the round-trip time of a segment that was sent only once (Karn's rule), and ends the doubling of the
    /// timeout.
    pub fn measured(&mut self, rtt: Duration) {
        let (smooth, variation) = match self.smooth {
            None => (rtt, Duration::from_ps(rtt.ps() / 2)),
            Some((smooth, variation)) => {
                let off = smooth.ps().abs_diff(rtt.ps());
                (
                    Duration::from_ps((smooth.ps() / 8 * 7).saturating_add(rtt.ps() / 8)),
                    Duration::from_ps((variation.ps() / 4 * 3).saturating_add(off / 4)),
                )
            }
        };
        self.smooth = Some((smooth, variation));
        self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        self.timeout = (smooth + variation * 4).clamp(self.least, self.most);
        self.backoff = 0;
    }

    /// The retransmission timeout now, with its doublings.
    pub fn timeout(&self) -> Duration {
        (self.timeout * (1 << self.backoff.min(40))).min(self.most)
    }

    /// Doubles the timeout, after it has expired without an acknowledgement.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Sets the timeout for data after a retransmitted SYN: three times the initial timeout (RFC 6298, 5.7).
    pub fn after_lost_syn(&mut self, first: Duration) {
        if self.smooth.is_none() {
            (self.timeout, self.backoff) = ((first * 3).clamp(self.least, self.most), 0);
        }
    }

    /// Returns the delay from the last segment or acknowledgement to the probe for a lost tail (RFC 8985, 7.2). If only
    /// one segment is in flight, `alone` is the maximum delay of its acknowledgement.
    pub fn probe(&self, first: Duration, alone: Option<Duration>) -> Duration {
        let wait = self.smooth.map_or(first, |(smooth, _)| smooth * 2);
        // The minimum of a timer is a microsecond.
        (wait + alone.unwrap_or_default()).max(Duration::from_us(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_us(n)
    }

    #[test]
    fn the_timeout_follows_from_measurements() {
        let mut rtt = Rtt::new(us(1_000_000), us(1), us(60_000_000));
        assert_eq!(rtt.timeout(), us(1_000_000));
        // SRTT = R, RTTVAR = R / 2, RTO = SRTT + 4 RTTVAR.
        rtt.measured(us(800));
        assert_eq!(rtt.timeout(), us(800 + 4 * 400));
        // RTTVAR = 3/4 * 400 + 1/4 * |800 - 1600| = 500, SRTT = 7/8 * 800 + 1/8 * 1600 = 900.
        rtt.measured(us(1600));
        assert_eq!((rtt.smooth(), rtt.timeout()), (Some(us(900)), us(900 + 4 * 500)));
        assert_eq!(rtt.shortest(), Some(us(800)));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.timeout(), us(4 * 2900));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), us(60_000_000));
        // RTTVAR = 3/4 * 500 + 0 = 375.
        rtt.measured(us(900));
        assert_eq!(rtt.timeout(), us(900 + 4 * 375), "a measurement ends the doubling");
        assert_eq!(Rtt::new(us(1000), us(5000), us(60_000)).timeout(), us(5000), "the least");
    }

    #[test]
    fn a_lost_syn_makes_the_first_timeout_longer() {
        let mut rtt = Rtt::new(us(1_000_000), us(200_000), us(60_000_000));
        rtt.back_off();
        rtt.after_lost_syn(us(1_000_000));
        assert_eq!(rtt.timeout(), us(3_000_000));
    }

    #[test]
    fn a_probe_comes_after_two_round_trips() {
        let mut rtt = Rtt::new(us(1_000_000), us(200_000), us(60_000_000));
        assert_eq!(rtt.probe(us(1_000_000), None), us(1_000_000));
        rtt.measured(us(20));
        assert_eq!(rtt.probe(us(1_000_000), None), us(40));
        assert_eq!(rtt.probe(us(1_000_000), Some(us(700))), us(740));
    }
}
