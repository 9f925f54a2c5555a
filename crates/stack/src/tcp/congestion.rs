//! The limit of a connection's bytes in flight: slow start and congestion avoidance of RFC 5681 (Reno), or CUBIC (RFC
//! 9438).

use crate::spec::CongestionControl;
use nicety_types::{Duration, Time};

/// The maximum window that window scaling can express.
const MOST: usize = 1 << 30;

/// The congestion window, in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    control: CongestionControl,
    segment: usize,
    window: usize,
    /// The window at which slow start ends.
    threshold: usize,
    /// Bytes acknowledged since the window last grew by a segment.
    acknowledged: usize,
    cubic: Cubic,
}

impl Congestion {
    pub fn new(control: CongestionControl, segment: usize, initial: usize) -> Congestion {
        Congestion {
            control,
            segment,
            window: (initial * segment).min(MOST),
            threshold: usize::MAX,
            acknowledged: 0,
            cubic: Cubic::default(),
        }
    }

    pub fn window(&self) -> usize {
        self.window
    }

    pub fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Grows the window for `bytes` acknowledged outside fast recovery. The caller calls this only if the window
    /// limited transmissions.
    ///
    /// Slow start counts all of these bytes, as in Linux (RFC 3465 without its limit): one acknowledgement may cover many
    /// segments if cards coalesce them.
    pub fn acknowledged(&mut self, now: Time, bytes: usize, rtt: Option<Duration>) {
        if self.is_slow_start() {
            self.window = (self.window + bytes).min(self.threshold.max(self.window)).min(MOST);
            return;
        }
        let target = match self.control {
            CongestionControl::Reno => {
                self.acknowledged += bytes;
                let grows = self.acknowledged >= self.window;
                if grows {
                    self.acknowledged -= self.window;
                }
                self.window + if grows { self.segment } else { 0 }
            }
            CongestionControl::Cubic => {
                self.cubic.window(now, self.window, bytes, self.segment, rtt.unwrap_or_default())
            }
        };
        self.window = target.min(MOST);
    }

    /// Reduces the window after a loss, once per window. `flight` is the number of bytes in flight.
    pub fn lost(&mut self, flight: usize) {
        let flight = flight.min(self.window);
        let kept = match self.control {
            CongestionControl::Reno => flight / 2,
            CongestionControl::Cubic => self.cubic.lost(flight, self.segment),
        };
        self.threshold = kept.max(2 * self.segment);
        (self.window, self.acknowledged) = (self.threshold, 0);
    }

    /// Reduces the window to one segment after a retransmission timeout. `again` says that the same bytes have timed
    /// out before.
    pub fn timed_out(&mut self, flight: usize, again: bool) {
        if !again {
            self.lost(flight);
        }
        (self.window, self.acknowledged) = (self.segment, 0);
        self.cubic.epoch = None;
    }

    /// Reduces the window to its initial size after at least one retransmission timeout without transmissions (RFC
    /// 5681, 4.1).
    pub fn idle(&mut self, initial: usize) {
        self.window = self.window.min(initial * self.segment);
        self.cubic.epoch = None;
    }
}

/// CUBIC's constants: C in segments per cubed second, and the factor that multiplies the window at a loss.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

#[derive(Clone, Debug, Default)]
struct Cubic {
    /// The window before the last loss, in segments.
    most: f64,
    epoch: Option<Epoch>,
}

/// A period of growth that begins at the first acknowledgement after a loss.
#[derive(Clone, Debug)]
struct Epoch {
    began: Time,
    /// The time at which the window reaches its old size again, in seconds from `began`.
    k: f64,
    /// The window that Reno would have, and CUBIC's window. Both are in segments, with fractions.
    reno: f64,
    window: f64,
}

impl Cubic {
    fn lost(&mut self, flight: usize, segment: usize) -> usize {
        let window = flight as f64 / segment as f64;
        // Fast convergence: a flow that did not return to its old window leaves more to others.
        self.most = if window < self.most { window * (1.0 + BETA) / 2.0 } else { window };
        self.epoch = None;
        (flight as f64 * BETA) as usize
    }

    /// Returns the window in bytes after `bytes` more were acknowledged.
    fn window(&mut self, now: Time, window: usize, bytes: usize, segment: usize, rtt: Duration) -> usize {
        let (size, acked) = (window as f64 / segment as f64, bytes as f64 / segment as f64);
        let most = &mut self.most;
        let epoch = self.epoch.get_or_insert_with(|| {
            *most = most.max(size);
            Epoch { began: now, k: cube_root((*most - size) / C), reno: size, window: size }
        });
        let seconds = |d: Duration| d.ps() as f64 * 1e-12;
        // The connection's window may have changed outside this function. CUBIC continues from the new window.
        if (epoch.window - size).abs() >= 1.0 {
            epoch.window = size;
        }
        let t = seconds(now.saturating_since(epoch.began)) + seconds(rtt);
        let target = C * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + *most;
        let alpha = if epoch.reno < *most { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        epoch.reno += alpha * acked / epoch.window;
        let target = target.clamp(epoch.window, 1.5 * epoch.window);
        epoch.window += (target - epoch.window) / epoch.window * acked;
        epoch.window = epoch.window.max(epoch.reno);
        (epoch.window * segment as f64) as usize
    }
}

/// Returns the cube root by Newton's method. Its result is the same on every machine, unlike a library function's.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    for _ in 0..200 {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_us(100_000));

    #[test]
    fn reno_doubles_each_round_trip_then_grows_by_a_segment() {
        let mut reno = Congestion::new(CongestionControl::Reno, 1000, 10);
        assert_eq!(reno.window(), 10_000);
        reno.acknowledged(Time::ZERO, 10_000, RTT);
        assert_eq!(reno.window(), 20_000);
        reno.lost(20_000);
        assert_eq!((reno.window(), reno.is_slow_start()), (10_000, false));
        (0..9).for_each(|_| reno.acknowledged(Time::ZERO, 1000, RTT));
        assert_eq!(reno.window(), 10_000);
        reno.acknowledged(Time::ZERO, 1000, RTT);
        assert_eq!(reno.window(), 11_000);
        reno.timed_out(11_000, false);
        assert_eq!((reno.window(), reno.threshold), (1000, 5500));
        reno.timed_out(1000, true);
        assert_eq!((reno.window(), reno.threshold), (1000, 5500), "the threshold falls once");
        reno.acknowledged(Time::ZERO, 9000, RTT);
        assert_eq!(reno.window(), 5500, "slow start ends at the threshold");
        reno.lost(2000);
        assert_eq!(reno.window(), 2000, "two segments at least");
    }

    #[test]
    fn cubic_is_back_at_its_old_window_after_k() {
        let mut cubic = Congestion::new(CongestionControl::Cubic, 1000, 1000);
        cubic.lost(1_000_000);
        assert_eq!(cubic.window(), 700_000);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.0856 s.
        assert!((cube_root(750.0) - 9.085_602_964_160_7).abs() < 1e-9);
        let mut at = Time::ZERO;
        let mut when = Vec::new();
        for goal in [700_001, 990_000, 1_010_000] {
            while cubic.window() < goal {
                at += Duration::from_us(100_000);
                let window = cubic.window();
                cubic.acknowledged(at, window, RTT);
            }
            when.push(at.ns() * 1e-9);
        }
        // The curve is flat around the old window: within 1 % of it from K - cbrt(10 / 0.4) = 6.16 s to K + 2.92 s =
        // 12.0 s.
        assert!((when[1] - 6.2).abs() < 0.2 && (when[2] - 12.0).abs() < 0.2, "{when:?}");
    }

    #[test]
    fn cubic_is_no_slower_than_reno_where_round_trips_are_short() {
        let mut cubic = Congestion::new(CongestionControl::Cubic, 1000, 10);
        cubic.lost(10_000);
        let mut at = Time::ZERO;
        for _ in 0..10 {
            at += Duration::from_us(100);
            let window = cubic.window();
            cubic.acknowledged(at, window, Some(Duration::from_us(100)));
        }
        // The window grows by alpha = 0.9 / 1.7 segments per round trip up to the old window, which takes 5.7 round
        // trips. Then it grows by 1 per round trip, to 14.3 segments.
        assert!((14_000..14_600).contains(&cubic.window()), "{}", cubic.window());
    }
}
