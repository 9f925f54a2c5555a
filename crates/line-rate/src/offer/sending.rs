//! The senders of a run with traffic: one for each port, which offers a port's packets at their due times.

use super::Offering;
use crate::meter::{CARD, sender as sender_of};
use crate::request::{refused, traffic_of};
use crate::rig::{DATA, PT, Rig};
use crate::shares::{due as due_of, seed_of, shares};
use crate::speed::Speed;
use crate::tested::{OnHost, Tested};
use nicety::{Cluster, Error};
use nicety_nic_core::parts::Offered;
use nicety_nic_spin::Target;
use nicety_traffic::{DueTime as TrafficDue, Stream, TrafficError};
use nicety_types::Duration;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The result of a port's generator: the offered packets, and the error that ended it, if any.
#[derive(Default)]
pub(super) struct Sender {
    offered: Offered,
    error: Option<TrafficError>,
}

impl Sender {
    pub(super) fn offered(self) -> Result<Offered, Error> {
        match self.error {
            Some(error) => Err(refused(&error)),
            None => Ok(self.offered),
        }
    }
}

impl Rig<'_> {
    /// Returns the packets to offer at each port, if not all; those of an earlier run, if there is one.
    pub(super) fn shares(
        &self,
        cluster: &Cluster,
        tested: &Tested<'_>,
        expressions: &[String],
        (speed, earlier): (&Speed, Option<&Offering>),
    ) -> Result<Option<Vec<u64>>, Error> {
        match (earlier, &speed.shares) {
            (Some(earlier), _) => Ok(earlier.shares.clone()),
            (None, Some(shares)) => Ok(Some(shares.clone())),
            (None, None) => {
                let generator = OnHost::of(cluster.host(sender_of(0).0), tested)?;
                let interval = |bytes| generator.interval(bytes);
                let open = |traffic, seed| tested.open(traffic, seed, self.request.xdp.is_some());
                shares(expressions, self.request.seed, (&open, &interval), self.environment)
            }
        }
    }

    /// Adds the senders of all ports, which end together.
    pub(super) fn send_all(
        &self,
        cluster: &mut Cluster,
        tested: &Tested<'_>,
        expressions: &[String],
        speed: &Speed,
    ) -> Result<(), Error> {
        let shares = self.shares(cluster, tested, expressions, (speed, None))?;
        for (port, expression) in (0..).zip(expressions) {
            let packets = shares.as_ref().map_or(u64::MAX, |shares| shares[port as usize]);
            self.send(cluster, tested, (port, expression), packets, speed)?;
        }
        Ok(())
    }

    /// Adds the sender of a port's traffic, at most `packets` packets at this speed.
    pub(super) fn send(
        &self,
        cluster: &mut Cluster,
        tested: &Tested<'_>,
        (port, expression): (u32, &str),
        packets: u64,
        speed: &Speed,
    ) -> Result<Rc<RefCell<Sender>>, Error> {
        let seed = seed_of(self.request.seed, port);
        let opened = tested.open(traffic_of(expression)?, seed, self.request.xdp.is_some());
        let has_frames = tested.has_frames();
        let mut stream = opened.and_then(Stream::ahead).map_err(|error| refused(&error))?;
        let sender = Rc::new(RefCell::new(Sender::default()));
        let left = sender.clone();
        let (times, ahead, wire) = (speed.times, speed.ahead, speed.wire);
        let generator = OnHost::of(cluster.host(sender_of(port).0), tested)?;
        let mut paced = speed.is_below_wire().then(Clock::default);
        cluster.program(sender_of(port).0, move |host| async move {
            host.barrier().await;
            let mut rest = packets;
            let next = |frame: &mut Vec<u8>| {
                rest = rest.checked_sub(1)?;
                let due = stream.next_frame(frame).unwrap_or_else(|error| {
                    left.borrow_mut().error = Some(error);
                    None
                });
                let due = due?;
                let due = match (due, &mut paced) {
                    (TrafficDue::Wire, Some(clock)) => {
                        clock.next(generator.interval(frame.len() as u64), wire)
                    }
                    (due, _) => due,
                };
                Some(due_of(due, times, ahead))
            };
            let target = Target { node: CARD, pt: PT, match_bits: DATA };
            // Nothing ends it early.
            let over = Cell::new(false);
            let offered = match has_frames {
                true => host.frames()?.offer(CARD.0, next, &over).await,
                false => host.portals()?.card().offer(target, next, &over).await,
            };
            left.borrow_mut().offered = offered;
            Ok(())
        });
        Ok(sender)
    }
}

/// Due times of packets at the speed of the card's own wire, on a faster one.
#[derive(Default)]
struct Clock {
    lasts: u64,
}

impl Clock {
    /// Returns the next packet's due time. It occupies the faster wire for `interval`.
    fn next(&mut self, interval: Duration, wire: f64) -> TrafficDue {
        let at = self.lasts;
        self.lasts += (interval.ps() as f64 * wire).round() as u64;
        TrafficDue::At { at, lasts: self.lasts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_cards_wire_are_due_at_its_rate_on_a_faster_one() {
        let mut clock = Clock::default();
        let next = |clock: &mut Clock, ps| match clock.next(Duration::from_ps(ps), 2.5) {
            TrafficDue::At { at, lasts } => (at, lasts),
            TrafficDue::Wire => unreachable!(),
        };
        assert_eq!([100, 40, 100].map(|ps| next(&mut clock, ps)), [(0, 250), (250, 350), (350, 600)]);
    }
}
