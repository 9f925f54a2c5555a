//! Weighted fair queueing of work with a length that is unknown until it is done.
//!
//! Each flow has a virtual time: the time that servers have spent on its work, including work in service, divided by
//! its weight. A free server serves the flow with the least virtual time. A flow that becomes backlogged resumes at
//! the virtual time of the others. It gains no credit while idle, and owes nothing for having been alone. Service is
//! not preempted. So a flow may lag behind its share by the length of another flow's piece of work.

use nicety_types::Time;
use std::collections::VecDeque;

/// The unit of virtual time: a picosecond of a server for a flow of weight 1, fine enough for the largest weight.
const SCALE: u128 = 1 << 32;

struct Flow<T> {
    waiting: VecDeque<T>,
    weight: u32,
    /// Virtual time of completed work.
    done: u128,
    /// Servers in use by it, and the sum of their start times.
    serving: u32,
    begun_ps: u128,
    /// Parked pieces of work: started and suspended.
    parked: u32,
    /// Pieces queued so far, and those of them that have started.
    pushed: u64,
    popped: u64,
}

impl<T> Flow<T> {
    fn virtual_time(&self, now: Time) -> u128 {
        let serving = u128::from(self.serving) * u128::from(now.ps()) - self.begun_ps;
        self.done + serving * SCALE / u128::from(self.weight)
    }
}

/// Queues of flows in front of a number of servers.
pub(crate) struct FairQueue<T> {
    flows: Vec<Flow<T>>,
    /// The virtual time at which the last service began.
    clock: u128,
}

impl<T> FairQueue<T> {
    pub const fn new() -> FairQueue<T> {
        FairQueue { flows: Vec::new(), clock: 0 }
    }

    /// Returns the flow with this number. It keeps the weight of its first use.
    fn flow(&mut self, number: usize, weight: u32) -> &mut Flow<T> {
        let clock = self.clock;
        while self.flows.len() <= number {
            let (waiting, weight) = (VecDeque::new(), 1);
            self.flows.push(Flow {
                waiting,
                weight,
                done: 0,
                serving: 0,
                begun_ps: 0,
                parked: 0,
                pushed: 0,
                popped: 0,
            });
        }
        let flow = &mut self.flows[number];
        flow.weight = weight;
        if flow.waiting.is_empty() && flow.serving == 0 && flow.parked == 0 {
            flow.done = flow.done.max(clock);
        }
        flow
    }

    /// Queues a piece of work.
    pub fn push(&mut self, number: usize, weight: u32, work: T) {
        let flow = self.flow(number, weight);
        flow.pushed += 1;
        flow.waiting.push_back(work);
    }

    /// Starts a piece that did not queue on a server.
    pub fn begin(&mut self, number: usize, weight: u32, now: Time) {
        self.flow(number, weight);
        self.serve(number, now);
    }

    fn serve(&mut self, number: usize, now: Time) {
        let flow = &mut self.flows[number];
        let virtual_time = flow.virtual_time(now);
        flow.serving += 1;
        flow.begun_ps += u128::from(now.ps());
        self.clock = self.clock.max(virtual_time);
    }

    /// Completes a flow's work that began at `begun`.
    pub(crate) fn end(&mut self, number: usize, begun: Time, now: Time) {
        let flow = &mut self.flows[number];
        flow.serving -= 1;
        flow.begun_ps -= u128::from(begun.ps());
        flow.done += u128::from(now.since(begun).ps()) * SCALE / u128::from(flow.weight);
    }

    /// Parks a flow's work that began at `begun`. Returns the position of this piece in its flow: the number of
    /// earlier pieces.
    pub fn park(&mut self, number: usize, begun: Time, now: Time) -> u64 {
        self.end(number, begun, now);
        let flow = &mut self.flows[number];
        flow.parked += 1;
        flow.pushed
    }

    /// Resumes parked work of a flow on a server.
    pub(crate) fn resume(&mut self, number: usize, now: Time) {
        self.flows[number].parked -= 1;
        self.serve(number, now);
    }

    /// Returns the parked piece that precedes everything queued. Without `begins`, returns the piece that precedes
    /// the other parked ones. `parked` lists flows and positions.
    pub(crate) fn parked_first(
        &self,
        parked: impl Iterator<Item = (usize, u64)>,
        now: Time,
        begins: bool,
    ) -> Option<usize> {
        let of = |(index, (number, place))| (self.rank(number, now), index, place);
        let (rank, index, place) = parked.enumerate().map(of).min()?;
        let number = rank.2;
        let before = match self.least(now) {
            Some(least) if begins && least == number => place <= self.flows[number].popped,
            Some(least) if begins => rank < self.rank(least, now),
            _ => true,
        };
        before.then_some(index)
    }

    /// Returns the sort key of a flow: virtual time, then servers in use divided by weight.
    fn rank(&self, number: usize, now: Time) -> (u128, u128, usize) {
        let flow = &self.flows[number];
        let servers = u128::from(flow.serving) * SCALE / u128::from(flow.weight);
        (flow.virtual_time(now), servers, number)
    }

    /// Returns the first backlogged flow.
    fn least(&self, now: Time) -> Option<usize> {
        let waiting = (0..self.flows.len()).filter(|&number| !self.flows[number].waiting.is_empty());
        waiting.min_by_key(|&number| self.rank(number, now))
    }

    /// Returns whether no piece is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.flows.iter().all(|flow| flow.waiting.is_empty())
    }

    /// Starts a queued piece of the first flow on a server. Among flows with equal virtual time, the first is the one
    /// with the fewest servers for its weight.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(usize, T)> {
        let number = self.least(now)?;
        let flow = &mut self.flows[number];
        let work = flow.waiting.pop_front()?;
        flow.popped += 1;
        self.serve(number, now);
        Some((number, work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the service by `servers` servers for always backlogged flows with these weights and lengths, up to
    /// `end`. Each flow's service is in picoseconds and includes unfinished pieces.
    fn backlogged(servers: usize, flows: &[(u32, Vec<u64>)], end: u64) -> Vec<u64> {
        let mut queue = FairQueue::new();
        let mut next = vec![0; flows.len()];
        let mut work = |flow: usize| {
            let lengths = &flows[flow].1;
            next[flow] += 1;
            lengths[(next[flow] - 1) % lengths.len()]
        };
        for (number, (weight, _)) in flows.iter().enumerate() {
            for _ in 0..=servers {
                queue.push(number, *weight, work(number));
            }
        }
        let mut running: Vec<(u64, usize, u64)> = Vec::new();
        let (mut now, mut used) = (0, vec![0; flows.len()]);
        while now < end {
            while running.len() < servers {
                let (number, length) = queue.pop(Time::from_ps(now)).unwrap();
                queue.push(number, flows[number].0, work(number));
                running.push((now + length, number, now));
            }
            running.sort_unstable();
            let (over, number, begun) = running.remove(0);
            now = over;
            used[number] += over - begun;
            queue.end(number, Time::from_ps(begun), Time::from_ps(over));
        }
        for (_, number, begun) in running {
            used[number] += now.saturating_sub(begun);
        }
        used
    }

    #[test]
    fn equal_work_alternates_by_weight() {
        let mut queue = FairQueue::new();
        for work in 0..4 {
            queue.push(0, 1, work);
            queue.push(1, 3, work);
        }
        let mut order = Vec::new();
        for k in 0..8 {
            let now = Time::from_ps(k * 100);
            order.push(queue.pop(now).unwrap().0);
            queue.end(order[k as usize], now, now + nicety_types::Duration::from_ps(100));
        }
        // Virtual times: 100 for a piece of the first flow, 33.3 for one of the second.
        assert_eq!(order, [0, 1, 1, 1, 1, 0, 0, 0]);
        assert!(queue.pop(Time::ZERO).is_none());
    }

    #[test]
    fn a_flow_that_was_idle_neither_saves_up_nor_owes() {
        let mut queue = FairQueue::new();
        let piece = |queue: &mut FairQueue<()>, at: u64| {
            let (number, ()) = queue.pop(Time::from_ps(at)).unwrap();
            queue.end(number, Time::from_ps(at), Time::from_ps(at + 10));
            number
        };
        for k in 0..100 {
            queue.push(0, 1, ());
            assert_eq!(piece(&mut queue, 10 * k), 0);
        }
        // The second flow starts late, and gets its half from then on.
        for _ in 0..6 {
            queue.push(0, 1, ());
            queue.push(1, 1, ());
        }
        let order: Vec<_> = (100..112).map(|k| piece(&mut queue, 10 * k)).collect();
        assert_eq!(order.iter().take(8).filter(|&&number| number == 0).count(), 4, "{order:?}");
    }

    #[test]
    fn unfinished_work_waits_for_its_turn_and_its_flow_owes_nothing_for_the_wait() {
        let mut queue = FairQueue::new();
        let at = Time::from_ps;
        queue.begin(0, 1, at(0));
        queue.push(1, 1, ());
        queue.push(1, 1, ());
        let place = queue.park(0, at(0), at(100));
        let first = |queue: &FairQueue<()>, now, begins| {
            queue.parked_first([(0, place)].into_iter(), at(now), begins)
        };
        // The first flow has had 100, the second nothing yet.
        assert_eq!(first(&queue, 100, true), None);
        assert_eq!(first(&queue, 100, false), Some(0), "it alone can be gone on with");
        assert_eq!(queue.pop(at(100)), Some((1, ())));
        queue.end(1, at(100), at(250));
        assert_eq!(first(&queue, 250, true), Some(0), "100 against 150");
        queue.resume(0, at(250));
        queue.end(0, at(250), at(290));
        queue.begin(0, 1, at(290));
        let place = queue.park(0, at(290), at(290));
        assert_eq!(queue.pop(at(290)), Some((1, ())), "150 against 140, with nothing else to begin");
        queue.end(1, at(290), at(300));
        // Within a flow the earlier piece comes first.
        queue.push(0, 1, ());
        assert_eq!(queue.parked_first([(0, place)].into_iter(), at(300), true), Some(0));
        assert_eq!(queue.parked_first([(0, place + 1)].into_iter(), at(300), true), None);
    }

    proptest! {
        // Start-time fair queueing: the services of two always backlogged flows, divided by weight, differ by at most
        // a piece of each for every server.
        #[test]
        fn shares_follow_weights(
            servers in 1usize..5,
            flows in prop::collection::vec((1u32..20, prop::collection::vec(1u64..1000, 1..5)), 2..5),
            end in 100_000u64..200_000,
        ) {
            let used = backlogged(servers, &flows, end);
            for (i, (a, lengths)) in flows.iter().enumerate() {
                for (j, (b, others)) in flows.iter().enumerate().skip(i + 1) {
                    let most = |lengths: &[u64]| *lengths.iter().max().unwrap() as f64;
                    let slack = (servers + 1) as f64
                        * (most(lengths) / f64::from(*a) + most(others) / f64::from(*b));
                    let apart = (used[i] as f64 / f64::from(*a) - used[j] as f64 / f64::from(*b)).abs();
                    prop_assert!(apart <= slack, "{used:?}: {apart} apart, at most {slack}");
                }
            }
        }
    }
}
