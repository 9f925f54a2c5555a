//! The speed of simulated microengines: instructions and memory references per second of CPU time, on one CPU core.
//!
//! `cargo bench -p nicety-apps --bench nfp`

use cpu_time::ThreadTime;
use nicety_apps::{pcsa, tsp::card as tsp};
use nicety_hpu::Image;
use nicety_hpu::asm::*;
use nicety_kernel::{Config, World};
use nicety_nic_nfp::{MemoryKind, Nfp, NfpSpec, Program, map};
use nicety_spec::{SHIPPED, Spec};
use tsp::{Distances, TspJob};

const PCSA: &[u8] = include_bytes!("../tests/data/pcsa.elf");
const TSP: &[u8] = include_bytes!("../tests/data/tsp.elf");

/// Prints the best of three rounds. A round returns named counts, and its duration is measured.
fn best<const N: usize>(name: &str, units: [&str; N], round: impl Fn() -> [u64; N]) {
    let mut rates = [0f64; N];
    for _ in 0..3 {
        let begun = ThreadTime::now();
        let counts = round();
        let seconds = begun.elapsed().as_secs_f64();
        for (rate, count) in rates.iter_mut().zip(counts) {
            *rate = rate.max(count as f64 / seconds);
        }
    }
    let rates: Vec<_> = units.iter().zip(rates).map(|(unit, rate)| format!("{unit} {rate:.0}")).collect();
    println!("{name}: {}", rates.join(", "));
}

/// Runs hand-written machine code on every context of every microengine. Returns the numbers of instructions and memory
/// references.
fn everywhere(spec: &NfpSpec, words: &[u32], contexts: usize) -> [u64; 2] {
    let mut world: World<()> = World::new(Config::default());
    let node = world.add_node();
    let nfp = Nfp::new(&world.sim(node), spec);
    let program = Program::new(Image::from_words(map::CODE, words, &spec.core), spec).unwrap();
    for core in 0..spec.cores {
        nfp.load(core, &program, contexts).unwrap();
        (0..contexts).for_each(|context| nfp.start(core, context, map::CODE, &[map::CLS]));
    }
    world.run().unwrap();
    let islands = 0..spec.islands();
    let references = islands.map(|island| nfp.memory(MemoryKind::Cls, island).counters().references).sum();
    [nfp.instructions(), references]
}

fn main() {
    let (card, _) = nicety::designs::read(&Spec::load("nfp-4000", &[], SHIPPED).unwrap()).unwrap();
    let spec = card.of::<NfpSpec>().unwrap().clone();
    let units = ["instructions_per_s", "references_per_s"];

    // A loop of ten instructions, 20000 iterations.
    let body = [add(T1, T1, T2), xor(T2, T2, T1), slli(T3, T1, 3), lw(T4, 0, SP), add(T4, T4, T3)];
    let [high, low] = li(T0, 20_000);
    let words = [
        &[high, low, addi(SP, SP, -16)][..],
        &body,
        &[sw(T4, 0, SP), nop(), nop(), addi(T0, T0, -1), bne(T0, ZERO, -36), ret()],
    ];
    best("computing, 60 x 8 contexts", units, || everywhere(&spec, &words.concat(), 8));

    // The loop has only loads.
    let words = [addi(T0, ZERO, 500), lw(T1, 0, A0), addi(T0, T0, -1), bne(T0, ZERO, -8), ret()];
    best("loads, 60 x 8 contexts", units, || everywhere(&spec, &words, 8));
    best("loads, 60 x 1 contexts", units, || everywhere(&spec, &words, 1));

    let addresses: Vec<u32> = (0..400_000u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
    best("cardinality, 60 x 8 contexts", ["updates_per_s", "references_per_s"], || {
        let run = pcsa::run(&spec, PCSA, &addresses, 60, 8, None).unwrap();
        [addresses.len() as u64, run.contexts.references]
    });

    let cities: Vec<_> = (0..60u32).map(|i| ((i * i * 37 % 1000) as u16, (i * 613 % 1009) as u16)).collect();
    let job = TspJob {
        cities: cities.into(),
        first: 0,
        climbs: 59,
        climbers: 59,
        seed: 1,
        distances: Distances::Root,
    };
    for distances in [Distances::Root, Distances::Table] {
        best(&format!("tours, {distances:?}"), units, || {
            let run = tsp::run(&spec, TSP, &TspJob { distances, ..job.clone() }, None).unwrap();
            [run.instructions, run.climbers.references]
        });
    }
}
