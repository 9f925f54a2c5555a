//! Tests channels between a host's threads and the card's processes, in virtual time.
//!
//! `tests/data/channels.elf` is `handlers/nfp/channels.c`, compiled for the isa of the shipped spec.

mod direct;
mod ends;
mod failing;
mod figures;
mod here;
mod indirect;
mod messages;
mod port;
mod random;
mod recording;
mod script;

use crate::spec;
use nicety_host::{Cpus, Memory};
use nicety_kernel::{Config, Sim, World};
use nicety_nic_nfp::{Card, Device, NfpSpec, Outcome, Program, Slot};
use nicety_types::{Level, Path, Recorder, Time};
use std::rc::Rc;
use std::sync::Arc;

const CHANNELS: &[u8] = include_bytes!("../data/channels.elf");

/// A host with a card.
pub(crate) struct Host {
    pub(crate) world: World<()>,
    pub(crate) sim: Sim,
    pub(crate) card: Rc<Card>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) program: Rc<Program>,
    pub(crate) recorder: Recorder,
}

impl Host {
    pub(crate) fn new(overrides: &[&str]) -> Host {
        Host::seeded(&spec(overrides), 1)
    }

    /// Returns a host with recorded messages.
    pub(crate) fn recorded(overrides: &[&str]) -> Host {
        Host::with(&spec(overrides), 1, &Recorder::new(Level::Messages, 10_000))
    }

    pub(crate) fn seeded(spec: &NfpSpec, seed: u64) -> Host {
        Host::with(spec, seed, &Recorder::off())
    }

    pub(crate) fn with(spec: &NfpSpec, seed: u64, recorder: &Recorder) -> Host {
        let mut world = World::new(Config { seed, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let memory = Rc::new(Memory::new(spec.node.host.memory));
        let cpus = Rc::new(Cpus::new(&sim, spec.node.host, recorder));
        let card = Card::install(
            &sim,
            Arc::new(spec.clone()),
            memory.clone(),
            &cpus,
            (None, 1),
            (&Slot::default(), recorder),
        );
        let program = Program::load(CHANNELS, spec).unwrap();
        Host { world, sim, card, memory, program, recorder: recorder.clone() }
    }

    /// Starts a process of `channels.c` as the only process on a microengine.
    pub(crate) fn process(&self, core: usize, name: &str, arguments: &[u32]) {
        let entry = self.program.image().require(name).unwrap();
        self.card.processor().load(core, &self.program, 1).unwrap();
        self.card.processor().start(core, 0, entry, arguments);
    }

    /// Starts a thread of the host.
    pub(crate) fn thread<F>(&self, thread: impl FnOnce(Device, Sim) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        self.sim.spawn_program("thread", thread(self.card.open(), self.sim.clone()));
    }

    /// Runs to the end, and checks that all resources are then free. Returns the time of the end.
    pub(crate) fn run(&mut self) -> Time {
        let end = self.world.run().unwrap_or_else(|error| panic!("{error}")).end;
        self.check_free();
        end
    }

    pub(crate) fn check_free(&self) {
        assert_eq!(self.card.channel_counters().pinned, 0, "pages are pinned");
        for direction in [nicety_channels::Direction::ToCard, nicety_channels::Direction::ToHost] {
            assert_eq!(self.card.idle_managers(direction), 8, "managers are busy");
        }
    }

    /// Returns the return value of the process on a microengine.
    pub(crate) fn returned(&self, core: usize) -> i32 {
        match self.card.processor().outcome(core, 0) {
            Some(Outcome::Returned(value)) => value as i32,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns a path that begins now.
pub(crate) fn from(sim: &Sim) -> Path {
    Path::from(sim.now())
}
