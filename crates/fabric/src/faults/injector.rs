//! The faults of one direction of a link.

use super::losses::{IsData, Losses};
use super::{Cause, FaultStatistics, Faults, LostPacket, NodeFailure, Outage, Place, Rates};
use crate::Packet;
use nicety_kernel::Rng;
use nicety_types::{Duration, LinkId, NodeId, Time};
use std::cell::{Ref, RefCell};
use std::rc::Rc;

/// The faults of one packet.
pub(crate) struct Verdict {
    /// The cause of the packet's loss, if it is lost.
    pub(crate) lost: Option<Cause>,
    /// Whether bits are flipped.
    pub(crate) damaged: bool,
    /// The packet's delay.
    pub(crate) delay: Duration,
    /// Whether the packet is duplicated.
    pub(crate) again: bool,
}

/// Decides the faults of the packets of one direction of a link.
pub(crate) struct Injector {
    from: Place,
    to: Place,
    nodes: Vec<NodeFailure>,
    down: Vec<Outage>,
    /// Numbers of the packets to lose, in ascending order.
    drop: Vec<u64>,
    /// Whether no faults are configured. The injector then exists only for the link's own bit errors.
    idle: bool,
    state: RefCell<State>,
}

struct State {
    rng: Rng,
    loss: FaultProcess,
    corruption: FaultProcess,
    duplication: FaultProcess,
    reordering: FaultProcess,
    delay: Duration,
    statistics: FaultStatistics,
    losses: Losses,
}

/// A fault that hits packets with a constant probability, or in bursts.
struct FaultProcess {
    /// The probability that the fault begins, for a packet in the good state, in units of 2^-53. Without bursts, it is
    /// the probability for every packet.
    begin: u64,
    /// The probability that a burst continues with the next packet, in units of 2^-53.
    go_on: u64,
    bad: bool,
}

impl FaultProcess {
    /// Returns a fault with this rate. `burst` is the mean length of a burst in packets; zero for independent faults.
    fn new(rate: f64, burst: f64) -> FaultProcess {
        let chance = |probability: f64| (probability * (1u64 << 53) as f64) as u64;
        if burst == 0.0 || rate >= 1.0 {
            return FaultProcess { begin: chance(rate), go_on: chance(rate), bad: false };
        }
        // On average, `burst` packets are in the bad state, and (1 - rate) / rate times as many packets in the good
        // state.
        let begin = rate / (burst * (1.0 - rate));
        FaultProcess { begin: chance(begin.min(1.0)), go_on: chance(1.0 - 1.0 / burst), bad: false }
    }

    /// Draws whether the next packet has the fault. A fault of probability zero draws no random number.
    fn draw(&mut self, rng: &mut Rng) -> bool {
        if self.begin == 0 {
            return false;
        }
        let below = if self.bad { self.go_on } else { self.begin };
        self.bad = rng.next_u64() >> 11 < below;
        self.bad
    }
}

impl Injector {
    /// Returns the injector of a direction of a link, or `None` if the direction has neither faults nor bit errors.
    pub(crate) fn new(
        faults: &Faults,
        link: LinkId,
        (from, to): (Place, Place),
        bit_errors: bool,
    ) -> Option<Rc<Injector>> {
        let own = faults.links.iter().find(|link| (link.from, link.to) == (from, to));
        let rates = own.map_or(faults.rates, |link| link.rates);
        let (down, mut drop) = own.map_or_else(Default::default, |own| (own.down.clone(), own.drop.clone()));
        let ends = |failure: &NodeFailure| failure.node == from || failure.node == to;
        let nodes: Vec<NodeFailure> = faults.nodes.iter().copied().filter(ends).collect();
        let idle = rates.are_zero() && down.is_empty() && drop.is_empty() && nodes.is_empty();
        if idle && !bit_errors {
            return None;
        }
        drop.sort_unstable();
        let Rates { loss, corruption, duplication, reordering, delay, burst } = rates;
        let state = State {
            rng: Rng::named(faults.seed, NodeId(link.0), "faults of a link"),
            loss: FaultProcess::new(loss, burst),
            corruption: FaultProcess::new(corruption, burst),
            duplication: FaultProcess::new(duplication, 0.0),
            reordering: FaultProcess::new(reordering, 0.0),
            delay,
            statistics: FaultStatistics {
                from,
                to,
                packets: 0,
                lost: 0,
                corrupted: 0,
                duplicated: 0,
                reordered: 0,
                resent: 0,
            },
            losses: Losses::default(),
        };
        Some(Rc::new(Injector { from, to, nodes, down, drop, idle, state: RefCell::new(state) }))
    }

    /// Decides the faults of a packet that begins at `start`. Flips bits of the packet if it is to be damaged.
    pub(crate) fn judge(&self, packet: &mut Packet, start: Time) -> Verdict {
        let state = &mut *self.state.borrow_mut();
        let (mut verdict, damage) = self.draw(state, start);
        verdict.damaged = false;
        if let Some(cause) = verdict.lost {
            state.statistics.lost += 1;
            state.losses.note(self.lost(packet, start, cause), packet);
            return Verdict { delay: Duration::ZERO, again: false, ..verdict };
        }
        if let Some((at, mask)) = damage {
            let header = packet.header.as_slice().len() as u64;
            let length = header + packet.payload.len();
            if length > 0 {
                verdict.damaged = true;
                state.statistics.corrupted += 1;
                state.losses.note(self.lost(packet, start, Cause::Damaged), packet);
                match at % length {
                    at if at < header => packet.header.damage(at as usize, mask),
                    at => packet.payload.damage(at - header, mask),
                }
            }
        }
        state.statistics.reordered += u64::from(!verdict.delay.is_zero());
        verdict
    }

    /// Decides the faults of a transmission that begins at `start` on a link that checks and resends.
    pub(crate) fn judge_checked(&self, start: Time) -> Verdict {
        let state = &mut *self.state.borrow_mut();
        let verdict = self.draw(state, start).0;
        let arrives = verdict.lost.is_none() && !verdict.damaged;
        state.statistics.reordered += u64::from(arrives && !verdict.delay.is_zero());
        verdict
    }

    /// Records a damaged or lost transmission on a link that checks and resends. `again` says whether the packet is
    /// sent again.
    pub(crate) fn failed_transmission(&self, cause: Cause, again: bool) {
        let statistics = &mut self.state.borrow_mut().statistics;
        match cause {
            Cause::BitErrors => statistics.corrupted += 1,
            _ => statistics.lost += 1,
        }
        statistics.resent += u64::from(again);
    }

    /// Records the loss of a packet after its last transmission, which began at `start`.
    pub(crate) fn give_up(&self, packet: &Packet, start: Time, cause: Cause) {
        self.state.borrow_mut().losses.note(self.lost(packet, start, cause), packet);
    }

    /// Draws a packet's faults, and the position and the mask of the damage, if any.
    fn draw(&self, state: &mut State, start: Time) -> (Verdict, Option<(u64, u8)>) {
        let State { rng, statistics, .. } = state;
        statistics.packets += 1;
        let (loss, corrupted) = (state.loss.draw(rng), state.corruption.draw(rng));
        let (again, late) = (state.duplication.draw(rng), state.reordering.draw(rng));
        let delay = match late {
            true if !state.delay.is_zero() => Duration::from_ps(1 + rng.below(state.delay.ps())),
            _ => Duration::ZERO,
        };
        // The position of the damage depends on the packet's length. It is drawn even if the packet is lost.
        let damage = corrupted.then(|| (rng.next_u64(), 1 + rng.below(255) as u8));
        let lost = self.failed(start).or_else(|| {
            let named = self.drop.binary_search(&statistics.packets).is_ok();
            named.then_some(Cause::Dropped).or_else(|| loss.then_some(Cause::Chance))
        });
        (Verdict { lost, damaged: corrupted, delay, again }, damage)
    }

    /// Whether the injector has nothing to report: no fault was configured, and no bit was damaged.
    pub(crate) fn is_silent(&self) -> bool {
        self.idle && self.state.borrow().statistics.corrupted == 0
    }

    /// Whether the injector may duplicate packets.
    pub(crate) fn duplicates(&self) -> bool {
        self.state.borrow().duplication.begin > 0
    }

    /// Counts a duplicated packet.
    pub(crate) fn duplicated(&self) {
        self.state.borrow_mut().statistics.duplicated += 1;
    }

    fn failed(&self, start: Time) -> Option<Cause> {
        let node = self.nodes.iter().find(|failure| failure.at <= start).copied().map(Cause::NodeDown);
        node.or_else(|| self.down.iter().find(|outage| outage.covers(start)).copied().map(Cause::LinkDown))
    }

    fn lost(&self, packet: &Packet, time: Time, cause: Cause) -> LostPacket {
        LostPacket::new(packet, time, (self.from, self.to), cause)
    }

    pub(crate) fn statistics(&self) -> FaultStatistics {
        self.state.borrow().statistics
    }

    /// The log of lost and damaged packets.
    pub(crate) fn losses(&self) -> Ref<'_, Losses> {
        Ref::map(self.state.borrow(), |state| &state.losses)
    }

    /// Sets the test for packets with data that is never sent again.
    pub(crate) fn set_data(&self, is_data: IsData) {
        self.state.borrow_mut().losses.set_data(is_data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(rate: f64, burst: f64) -> (f64, f64) {
        let mut rng = Rng::named(3, NodeId(0), "a test");
        let mut happening = FaultProcess::new(rate, burst);
        let happened: Vec<bool> = (0..2_000_000).map(|_| happening.draw(&mut rng)).collect();
        let hits = happened.iter().filter(|&&hit| hit).count();
        let bursts = happened.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        (hits as f64 / 2_000_000.0, hits as f64 / bursts.max(1) as f64)
    }

    #[test]
    fn rates_and_bursts_come_out() {
        for (rate, burst) in [(0.1, 0.0), (0.1, 1.0), (0.1, 4.0), (0.01, 20.0), (0.5, 3.0)] {
            let (found, length) = share(rate, burst);
            assert!((found / rate - 1.0).abs() < 0.1, "{rate} {burst}: {found}");
            let expected = if burst == 0.0 { 1.0 / (1.0 - rate) } else { burst };
            assert!((length / expected - 1.0).abs() < 0.1, "{rate} {burst}: {length}");
        }
        assert_eq!(share(0.0, 4.0).0, 0.0);
        assert_eq!(share(1.0, 0.0).0, 1.0);
    }

    #[test]
    fn a_direction_without_faults_has_no_injector() {
        let (a, b) = (Place::Host(0), Place::Host(1));
        let nodes = vec![NodeFailure { node: Place::Host(2), at: Time::ZERO }];
        let faults = Faults { nodes, ..Faults::default() };
        assert!(Injector::new(&faults, LinkId(0), (a, b), false).is_none());
        let rates = Rates { loss: 0.1, ..Rates::default() };
        assert!(Injector::new(&faults, LinkId(0), (a, b), true).is_some_and(|link| link.is_silent()));
        assert!(Injector::new(&Faults { rates, ..faults }, LinkId(0), (a, b), false).is_some());
    }
}
