//! Arrived packets or messages. Calls take them in the order of arrival.

use nicety_kernel::{Signal, Sim};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Arrived packets or messages. A call takes the oldest one that it wants, or waits for one.
pub struct Arrivals<M> {
    queue: RefCell<VecDeque<M>>,
    arrived: Signal,
}

impl<M> Arrivals<M> {
    /// Returns an empty queue.
    pub fn new(sim: &Sim) -> Arrivals<M> {
        Arrivals { queue: RefCell::default(), arrived: Signal::new(sim) }
    }

    /// Adds an arrival.
    pub fn add(&self, arrival: M) {
        self.queue.borrow_mut().push_back(arrival);
        self.arrived.notify_all();
    }

    /// Waits for an arrival for which `wants` returns true, and takes the oldest such arrival.
    pub async fn take(&self, wants: impl Fn(&M) -> bool) -> M {
        self.arrived.wait_until(|| self.queue.borrow().iter().any(&wants)).await;
        let mut queue = self.queue.borrow_mut();
        let at = queue.iter().position(&wants).expect("just seen");
        queue.remove(at).expect("just seen")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::{Duration, Time};
    use std::rc::Rc;

    #[test]
    fn a_call_takes_the_oldest_arrival_that_it_wants_or_waits() {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let arrivals = Rc::new(Arrivals::new(&sim));
        let (adder, own) = (arrivals.clone(), sim.clone());
        sim.spawn_program("arrivals", async move {
            for arrival in [(1, 'a'), (2, 'b'), (1, 'c')] {
                own.delay(Duration::from_ns(10)).await;
                adder.add(arrival);
            }
        });
        let own = sim.clone();
        sim.spawn_program("calls", async move {
            assert_eq!(arrivals.take(|&(kind, _)| kind == 2).await, (2, 'b'));
            assert_eq!(own.now(), Time::from_ps(20_000));
            assert_eq!(arrivals.take(|&(kind, _)| kind == 1).await, (1, 'a'));
            assert_eq!(arrivals.take(|&(kind, _)| kind == 1).await, (1, 'c'));
            assert_eq!(own.now(), Time::from_ps(30_000));
        });
        world.run().unwrap();
    }
}
