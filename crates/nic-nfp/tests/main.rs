//! Tests microengines: cycles calculated by hand, compiled programs, and general properties.

mod channels;
mod cycles;
mod limits;
mod properties;
mod untrusted;

use nicety_hpu::Image;
use nicety_kernel::{Config, World};
use nicety_nic_nfp::{Nfp, NfpSpec, Program, map};
use nicety_spec::{SHIPPED, Spec, parse_override};
use std::rc::Rc;

/// Returns the shipped card, with overrides.
fn spec(overrides: &[&str]) -> NfpSpec {
    try_spec(overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn try_spec(overrides: &[&str]) -> Result<NfpSpec, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("nfp-4000", &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) =
        nicety_nic_core::read(&spec, &[nicety_nic_nfp::DESIGN]).map_err(|errors| errors.to_string())?;
    card.of::<NfpSpec>().cloned().map_err(|wrong| wrong.to_string())
}

/// Returns hand-assembled code as a program.
fn program(spec: &NfpSpec, words: &[u32]) -> Rc<Program> {
    Program::new(Image::from_words(map::CODE, words, &spec.core), spec).unwrap()
}

/// A processor without a card.
struct Rig {
    world: World<()>,
    nfp: Rc<Nfp>,
}

impl Rig {
    fn new(spec: &NfpSpec) -> Rig {
        let mut world = World::new(Config::default());
        let node = world.add_node();
        let nfp = Nfp::new(&world.sim(node), spec);
        Rig { world, nfp }
    }

    /// Starts the same code with the same arguments. Each item is a microengine and its number of contexts.
    fn running(spec: &NfpSpec, words: &[u32], cores: &[(usize, usize)], arguments: &[u32]) -> Rig {
        let rig = Rig::new(spec);
        let program = program(spec, words);
        for &(core, contexts) in cores {
            rig.nfp.load(core, &program, contexts).unwrap();
            (0..contexts).for_each(|context| rig.nfp.start(core, context, map::CODE, arguments));
        }
        rig
    }

    /// Runs to the end, and returns the last cycle.
    fn run(&mut self) -> u64 {
        self.world.run().unwrap();
        self.nfp.cycle()
    }
}
