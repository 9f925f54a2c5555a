//! The arbiters between cores and shared units, in simulated time: commands to the card's engines, and feedbacks to
//! its scheduler.
//!
//! A command is in its core's queue for a cycle, and in its cluster's register for another. Then it is at its engine,
//! if that has a place. The engine holds the place until the command's response has left its queue. The card passes
//! one response a cycle, and the core gets it a cycle later. So a place is held for three cycles fewer than the
//! command takes in all (`cmd_unit.sv`).

use crate::pspin::tree::{Outputs, Tree};
use nicety_kernel::{Needed, Signal, Sim};
use nicety_types::{Frequency, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Cycles from a command's issue until its engine may take it: one in its core's queue, one in its cluster's
/// register.
pub const TO_ENGINE: u64 = 2;
/// Cycles from the end of a command at its engine until its core gets the response: the response queue, and a
/// register.
pub const FROM_ENGINE: u64 = 2;

/// The engines that execute commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Writes to host memory from registers.
    HostDirect,
    /// Sends.
    Outbound,
    /// DMA with the host, in both directions.
    HostDma,
}

/// Number of engines.
pub(crate) const ENGINES: usize = 3;
/// The engines' names in reports, in the order of [`Engine`].
pub(crate) const ENGINE_NAMES: [&str; ENGINES] =
    ["writes out of registers to the host", "sends", "DMA with the host"];

/// The cycles of the card's clock.
#[derive(Clone, Copy, Debug)]
pub struct Cycles(pub(crate) Frequency);

impl Cycles {
    /// Returns the first cycle that begins at `time` or later.
    pub fn from(self, time: Time) -> u64 {
        let elapsed = time.since(Time::ZERO);
        let whole = self.0.cycles_in(elapsed);
        whole + u64::from(self.0.cycles(whole) < elapsed)
    }

    /// Returns the time at which a cycle begins.
    pub fn at(self, cycle: u64) -> Time {
        Time::ZERO + self.0.cycles(cycle)
    }
}

/// An item that waits for its turn.
pub struct Ticket {
    output: usize,
    /// The cycle in which its output has taken it.
    taken: Cell<Option<u64>>,
    /// The cycle in which its response has arrived.
    answered: Cell<Option<u64>>,
    /// The callback for the time at which it leaves its core.
    leaves: RefCell<Option<Box<dyn FnOnce()>>>,
    changed: Signal,
}

impl Ticket {
    /// Waits until its output has taken it. Returns the cycle.
    pub async fn taken(&self) -> u64 {
        self.changed.wait_until(|| self.taken.get().is_some()).await;
        self.taken.get().expect("just seen")
    }
}

/// Items that an output has finished, and the cycle of each.
type Done = VecDeque<(u64, Rc<Ticket>)>;

/// The outputs and the items that wait for them.
struct State {
    tree: Tree<Rc<Ticket>>,
    /// Occupied places of each output.
    busy: Box<[u32]>,
    /// Cycles for which items had places of each output, added up.
    held: Box<[u64]>,
    done: Box<[Done]>,
    /// The output with the first turn for the next response.
    first: usize,
}

/// Units shared by cores. Each output takes one item a cycle.
pub struct Arbiter {
    sim: Sim,
    pub(crate) cycles: Cycles,
    /// Places of each output.
    places: u32,
    state: RefCell<State>,
    /// Whether the next cycle is due.
    due: Cell<bool>,
}

/// The shape of an [`Arbiter`].
pub(crate) struct Shape {
    pub(crate) clusters: usize,
    pub(crate) cluster_cores: usize,
    pub(crate) outputs: usize,
    /// Items that an output holds. 0 for no limit.
    pub(crate) places: u32,
    /// Items that a cluster's register holds (0 for no limit), and the fewest cycles in it.
    pub(crate) depth: u32,
    pub(crate) delay: u64,
}

/// One cycle of the outputs.
struct Step<'s> {
    cycle: u64,
    places: u32,
    busy: &'s mut [u32],
}

impl Outputs<Rc<Ticket>> for Step<'_> {
    fn of(&self, item: &Rc<Ticket>) -> usize {
        item.output
    }

    fn has_room(&self, output: usize) -> bool {
        self.busy[output] < self.places
    }

    fn left_core(&mut self, item: &Rc<Ticket>) {
        if let Some(leaves) = item.leaves.take() {
            leaves();
        }
    }

    fn take(&mut self, output: usize, item: Rc<Ticket>) {
        self.busy[output] += 1;
        item.taken.set(Some(self.cycle));
        item.changed.notify_all();
    }
}

impl State {
    /// An item gives up its place.
    pub fn release(&mut self, cycle: u64, ticket: &Ticket) {
        self.busy[ticket.output] -= 1;
        let taken = ticket.taken.get().expect("an item with a place has taken it");
        self.held[ticket.output] += cycle.saturating_sub(taken);
    }

    /// Takes one response from its queue, which frees a place. Returns whether there was one.
    pub fn respond(&mut self, cycle: u64) -> bool {
        let outputs = self.done.len();
        let is_ready = |output: &usize| self.done[*output].front().is_some_and(|(since, _)| *since < cycle);
        let next = (0..outputs).map(|offset| (self.first + offset) % outputs).find(is_ready);
        let Some(output) = next else { return false };
        let (_, ticket) = self.done[output].pop_front().expect("just seen");
        self.first = (output + 1) % outputs;
        self.release(cycle, &ticket);
        ticket.answered.set(Some(cycle + 1));
        ticket.changed.notify_all();
        true
    }
}

impl Arbiter {
    pub(crate) fn new(sim: &Sim, clock: Frequency, shape: &Shape) -> Rc<Arbiter> {
        let Shape { clusters, cluster_cores, outputs, places, depth, delay } = *shape;
        Rc::new(Arbiter {
            sim: sim.clone(),
            cycles: Cycles(clock),
            places: if places == 0 { u32::MAX } else { places },
            state: RefCell::new(State {
                tree: Tree::new(clusters, cluster_cores, outputs, depth as usize, delay),
                busy: vec![0; outputs].into(),
                held: vec![0; outputs].into(),
                done: (0..outputs).map(|_| VecDeque::new()).collect(),
                first: 0,
            }),
            due: Cell::new(false),
        })
    }

    /// Queues an item of a core for an output. `leaves` is called when the core's cluster has taken it.
    pub fn push(
        self: &Rc<Self>,
        core: usize,
        output: usize,
        leaves: Option<Box<dyn FnOnce()>>,
    ) -> Rc<Ticket> {
        let ticket = Rc::new(Ticket {
            output,
            taken: Cell::new(None),
            answered: Cell::new(None),
            leaves: RefCell::new(leaves),
            changed: Signal::new(&self.sim),
        });
        self.state.borrow_mut().tree.push(core, self.now(), ticket.clone());
        self.wake();
        ticket
    }

    /// Queues the response to an item that its output has finished. Returns when the core has the response.
    pub async fn respond(self: &Rc<Self>, ticket: &Rc<Ticket>) {
        self.state.borrow_mut().done[ticket.output].push_back((self.now(), ticket.clone()));
        self.wake();
        ticket.changed.wait_until(|| ticket.answered.get().is_some()).await;
        self.sim.until(self.cycles.at(ticket.answered.get().expect("just seen"))).await;
    }

    /// Ends an item without a response at its output.
    pub(crate) fn free(&self, ticket: &Ticket) {
        let now = self.now();
        self.state.borrow_mut().release(now, ticket);
    }

    /// The output with the most occupied places, and the cycles for which items had them, over the places; none where places are not limited.
    pub(crate) fn busiest(&self) -> Option<(usize, u64)> {
        let places = u64::from((self.places < u32::MAX).then_some(self.places)?);
        let state = self.state.borrow();
        state.held.iter().map(|held| held.div_ceil(places)).enumerate().rev().max_by_key(|(_, held)| *held)
    }

    fn now(&self) -> u64 {
        self.cycles.from(self.sim.now())
    }

    /// Schedules the next cycle, in which something may move.
    fn wake(self: &Rc<Self>) {
        if !self.due.replace(true) {
            let (arbiter, none) = (self.clone(), [Needed::NOTHING, Needed::NOTHING]);
            let at = self.cycles.at(self.now() + 1);
            self.sim.spawn_at(at, none, || async move { arbiter.step() });
        }
    }

    fn step(self: &Rc<Self>) {
        self.due.set(false);
        let cycle = self.now();
        let again = {
            let state = &mut *self.state.borrow_mut();
            let responded = state.respond(cycle);
            let mut step = Step { cycle, places: self.places, busy: &mut state.busy };
            let moved = state.tree.step(cycle, &mut step);
            responded || moved || state.done.iter().flatten().any(|(since, _)| *since >= cycle)
        };
        if again {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::Duration;

    /// The cycles in which each command is granted and answered.
    type GrantedAnswered = Vec<(u64, u64)>;

    /// Returns the cycles in which commands are granted and answered. The engines take `takes` cycles for each.
    pub fn commands(places: u32, commands: &[(usize, Engine)], takes: u64) -> Vec<(u64, u64)> {
        run(places, commands, takes).0
    }

    /// The same, and the busiest output.
    fn run(places: u32, commands: &[(usize, Engine)], takes: u64) -> (GrantedAnswered, Option<(usize, u64)>) {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let shape = Shape { clusters: 4, cluster_cores: 8, outputs: ENGINES, places, depth: 2, delay: 1 };
        let arbiter = Arbiter::new(&sim, Frequency::from_hz(1_000_000_000), &shape);
        let found = Rc::new(RefCell::new(vec![(0, 0); commands.len()]));
        for (number, &(core, engine)) in commands.iter().enumerate() {
            let (arbiter, sim, found) = (arbiter.clone(), sim.clone(), found.clone());
            sim.clone().spawn(async move {
                let ticket = arbiter.push(core, engine as usize, None);
                let taken = ticket.taken().await;
                sim.delay(Duration::from_ps(1000 * takes)).await;
                arbiter.respond(&ticket).await;
                found.borrow_mut()[number] = (taken, sim.now().ps() / 1000);
            });
        }
        world.run().unwrap();
        (found.take(), arbiter.busiest())
    }

    #[test]
    fn an_engines_occupancy_is_that_of_its_places() {
        // Sixteen commands of 18 cycles each, of seven places: 288 / 7, rounded up. Of unlimited places there is none.
        let all: Vec<_> = (0..16).map(|core| (core * 2, Engine::HostDma)).collect();
        assert_eq!(run(7, &all, 17).1, Some((Engine::HostDma as usize, 42)));
        assert_eq!(run(0, &all, 17).1, None);
    }

    #[test]
    fn a_command_takes_four_cycles_beside_its_engine() {
        // Taken at 2, done at 2 + 17. The response leaves at 20 and is at the core at 21. A write of 64 B to the
        // host.
        assert_eq!(commands(7, &[(5, Engine::HostDma)], 17), [(2, 21)]);
    }

    #[test]
    fn seven_commands_are_in_flight_for_three_cycles_fewer_than_each_takes() {
        // Cores of four clusters issue a command a cycle to the engine. The eighth is granted when the first has its
        // response, 18 cycles after its grant.
        let all: Vec<_> = (0..16).map(|core| (core * 2, Engine::HostDma)).collect();
        let mut granted: Vec<_> = commands(7, &all, 17).iter().map(|found| found.0).collect();
        granted.sort_unstable();
        let expected: Vec<u64> = (0..16).map(|number| 2 + number % 7 + number / 7 * 18).collect();
        assert_eq!(granted, expected, "7 commands in each 21 - 3 cycles");
    }

    #[test]
    fn engines_have_places_of_their_own_and_one_response_a_cycle_is_for_all() {
        let all = [(0, Engine::HostDirect), (8, Engine::Outbound), (16, Engine::HostDma)];
        // All are granted at 2 and done at 5. Responses leave at 6, 7 and 8.
        let found = commands(1, &all, 3);
        assert_eq!(found.iter().map(|found| found.0).collect::<Vec<_>>(), [2, 2, 2]);
        let mut answered: Vec<_> = found.iter().map(|found| found.1).collect();
        answered.sort_unstable();
        assert_eq!(answered, [7, 8, 9]);
    }

    #[test]
    fn cycles_begin_at_edges() {
        let cycles = Cycles(Frequency::from_hz(3_000_000_000));
        for cycle in [0, 1, 2, 3, 1_000_000_007] {
            let at = cycles.at(cycle);
            assert_eq!(cycles.from(at), cycle);
            assert_eq!(cycles.from(at + Duration::from_ps(1)), cycle + 1);
        }
    }
}
