//! A bus, a clock, and a user of the bus, for the tests.

use nicety_host::pcie::{Generation, PcieSpec};
use nicety_host::{Bus, BusSpec};
use nicety_kernel::{Config, Sim, World};
use nicety_types::{Duration, MessageId, NodeId, Path, Time};
use std::rc::Rc;

/// The link of the tables: generation 3 x8, MPS 256 B, MRRS 512 B. The latency is 250 ns. A TLP is in the receiver's
/// buffer after 50 ns of it. A byte takes 126.953125 ps. Acks and UpdateFCs leave after (256 + 28) x 2.5 / 8 + 115 =
/// 203 ns.
pub fn gen3x8() -> PcieSpec {
    PcieSpec::new(Generation::Gen3, 8, Duration::from_ns(250))
}

/// The time of `bytes` bytes on the wire of [`gen3x8`], in ps rounded up. A byte takes 65000 / 512 ps.
pub fn wire(bytes: u64) -> u64 {
    (bytes * 65_000).div_ceil(512)
}

/// Runs a program on a node with a link.
pub fn on<F: Future<Output = ()> + 'static>(spec: PcieSpec, program: impl FnOnce(Sim, Rc<Bus>) -> F) {
    let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let bus = Rc::new(Bus::new(&sim, BusSpec::Pcie(spec)));
    sim.spawn_program("test", program(sim.clone(), bus));
    world.run().unwrap();
}

/// Returns a message with this number.
pub fn message(sequence: u64) -> MessageId {
    MessageId { source: NodeId(0), sequence }
}

pub fn at(ps: u64) -> Path {
    Path::from(Time::from_ps(ps))
}

/// Returns a path that begins now.
pub fn now(sim: &Sim) -> Path {
    Path::from(sim.now())
}
