//! The packets that each of several ports offers: those that are due until the first port ends.
//!
//! They are determined before the run, on wires without stalls, and by the due time of a packet behind the last one. In the run
//! itself, a port that a full packet buffer stalls would end late. Meanwhile the others would send more than their rates allow,
//! so the card would get another mix.

use super::request::{refused, traffic_of};
use nicety::{Environment, Error};
use nicety_nic_core::parts::{DueTime, Pace};
use nicety_traffic::{DueTime as TrafficDue, Stream, Traffic, TrafficError};
use nicety_types::{Duration, Time};
use std::sync::atomic::Ordering;

/// Returns the seed of a port's traffic.
pub(super) fn seed_of(seed: u64, port: u32) -> u64 {
    seed.wrapping_add(port.into())
}

/// Returns the due time of a packet at `times` the traffic's rate, and `ahead` earlier.
pub(super) fn due(due: TrafficDue, times: f64, ahead: Duration) -> DueTime {
    let faster = |ps: u64| {
        let ps = if times == 1.0 { ps } else { (ps as f64 / times).round() as u64 };
        ps.saturating_sub(ahead.ps())
    };
    match due {
        TrafficDue::Wire => DueTime::Wire,
        TrafficDue::At { at, lasts } => DueTime::after(faster(at), faster(lasts)),
    }
}

/// Opens traffic for a card, with a seed.
type Open<'o> = dyn Fn(Traffic, u64) -> Result<Stream, TrafficError> + 'o;

/// Returns the packets that each port offers; none for a single port, which offers all. `open` opens traffic, and `interval` is
/// the time of a packet of a length on the link.
///
/// # Errors
/// Invalid traffic, or an interrupt.
pub(super) fn shares(
    expressions: &[String],
    seed: u64,
    (open, interval): (&Open<'_>, &dyn Fn(u64) -> Duration),
    environment: &Environment<'_>,
) -> Result<Option<Vec<u64>>, Error> {
    if expressions.len() < 2 {
        return Ok(None);
    }
    let wire = |(port, expression): (u32, &String)| {
        let opened = open(traffic_of(expression)?, seed_of(seed, port));
        Wire::on(opened.map_err(|error| refused(&error))?)
    };
    let mut wires = (0..).zip(expressions).map(wire).collect::<Result<Vec<_>, _>>()?;
    let interrupt = environment.interrupt.as_deref();
    loop {
        let first = wires.iter_mut().min_by_key(|wire| wire.at).expect("there are two at least");
        let Some(bytes) = first.next else {
            return Ok(Some(wires.iter().map(|wire| wire.sent).collect()));
        };
        first.send(bytes, interval(bytes))?;
        if interrupt.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(Error::Interrupted);
        }
    }
}

/// A port's wire without stalls.
struct Wire {
    stream: Stream,
    pace: Pace,
    frame: Vec<u8>,
    /// Bytes of the next packet; none at the end.
    next: Option<u64>,
    /// The time at which it leaves, or would leave behind the last one.
    at: Time,
    sent: u64,
}

impl Wire {
    fn on(stream: Stream) -> Result<Wire, Error> {
        let pace = Pace::from(Time::ZERO);
        let mut wire = Wire { stream, pace, frame: Vec::new(), next: None, at: Time::ZERO, sent: 0 };
        wire.look()?;
        Ok(wire)
    }

    fn look(&mut self) -> Result<(), Error> {
        let next = self.stream.next_frame(&mut self.frame).map_err(|error| refused(&error))?;
        self.next = next.map(|_| self.frame.len() as u64);
        self.at = match next {
            Some(next) => self.pace.next(due(next, 1.0, Duration::ZERO)),
            None => self.pace.over(),
        };
        Ok(())
    }

    fn send(&mut self, bytes: u64, interval: Duration) -> Result<(), Error> {
        self.pace.sent(self.at, interval, bytes);
        self.sent += 1;
        self.look()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ports_end_with_the_first_one_on_wires_that_nothing_holds_up() {
        // 80 ps per byte, and 24 bytes in addition to a frame.
        let interval = |bytes| Duration::from_ps(80 * (bytes + 24));
        let of = |expressions: &[&str]| {
            let expressions: Vec<String> = expressions.iter().map(ToString::to_string).collect();
            let open = |traffic: Traffic, seed| traffic.open(seed, 1518);
            shares(&expressions, 1, (&open, &interval), &Environment::default()).unwrap()
        };
        assert_eq!(of(&["udp"]), None);
        assert_eq!(of(&["udp size=64 packets=100", "udp size=64 packets=100"]), Some(vec![100, 100]));
        // 84 and 1524 bytes of the wire: when the first ends, the other begins its sixth packet.
        assert_eq!(of(&["udp size=60 packets=100", "udp size=1500 packets=100"]), Some(vec![100, 6]));
        // 1 us with the gap behind the last packet: one every 100 ns, and one every 400 ns.
        let paced = of(&["udp size=64 rate=10Mpps packets=10", "udp size=64 rate=2500kpps packets=10"]);
        assert_eq!(paced, Some(vec![10, 3]));
    }
}
