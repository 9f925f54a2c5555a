//! Cardinality by probabilistic counting with stochastic averaging: `handlers/nfp/pcsa.c` on microengines.
//!
//! - [`share`]: a few addresses, shared by the contexts of a microengine, and the use of their cycles.
//! - [`run`]: addresses in a memory, in parts for any number of contexts.
//! - [`rates`]: updates per second of the whole card (`rates.rs`).
//! - [`stream`]: addresses from the host (`stream.rs`).
//! - [`replay`]: packets through the port; the card finds their sources (`replay.rs`).

mod rates;
mod replay;
mod stream;

pub use rates::{Rates, fresh, rates};
pub use replay::{Counted, END_OF_REPLAY, Frame, Replayed, replay};
pub use stream::{BLOCK, Streamed, check_sketches, stream};

use crate::experiment::{self, ExperimentError, shares};
use nicety_nic_nfp::{ContextCounters, CoreCounters, MemoryKind, Nfp, NfpSpec, Place, Program, map};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Default number of sketches of the card's program.
pub const SKETCHES: u32 = 2048;
/// Minimum number of sketches: those that one memory reference moves.
pub const FEWEST_SKETCHES: u32 = 16;

/// Maximum addresses of [`share`]: those that fit the local memory of `pcsa.c`.
pub const SHARED: usize = 256;

/// Flajolet and Martin's correction: an address in this part of 2^R sets the bits below R.
const PHI: f64 = 0.77351;

/// The result of counting.
#[derive(Clone, Debug, PartialEq)]
pub struct PcsaRun {
    /// Cycles from the start of the processes to the end of the last.
    pub cycles: u64,
    /// The use of the cycles of all counting contexts.
    pub contexts: ContextCounters,
    /// The use of the first microengine's cycles.
    pub core: CoreCounters,
    /// The trailing ones of all sketches.
    pub sum: u32,
}

impl PcsaRun {
    /// Estimates the number of distinct addresses, with [`SKETCHES`] sketches.
    pub fn estimate(&self) -> f64 {
        estimate(self.sum, SKETCHES)
    }
}

/// Estimates the number of distinct addresses from the sum of the trailing ones of `sketches` sketches.
pub fn estimate(sum: u32, sketches: u32) -> f64 {
    let m = f64::from(sketches);
    m / PHI * (f64::from(sum) / m).exp2()
}

/// Returns Flajolet and Martin's standard error of `sketches` sketches, relative to the number counted.
pub fn standard_error(sketches: u32) -> f64 {
    0.78 / f64::from(sketches).sqrt()
}

/// Counts `addresses` on the first `cores` microengines, `contexts` processes each, and adds up the sketches of their islands.
/// `elf` is `pcsa.c`, compiled for the spec's isa; setting `interrupt` from outside ends the run.
///
/// The addresses lie in CTM where they fit, in EMEM otherwise, in equal parts for all processes. A process without addresses is
/// not started.
///
/// # Errors
/// When the cores or contexts do not exist, the program does not fit, or a process stops.
pub fn run(
    spec: &NfpSpec,
    elf: &[u8],
    addresses: &[u32],
    cores: usize,
    contexts: usize,
    interrupt: Option<Arc<AtomicBool>>,
) -> Result<PcsaRun, ExperimentError> {
    check_cores(spec, cores)?;
    let addresses = addresses.to_vec();
    experiment::run(spec, elf, interrupt, move |nfp, program| async move {
        let counter = Counter::new(&nfp, &program, cores, contexts)?;
        let started = counter.start(&addresses)?;
        counter.finish(&started).await?;
        let cycles = nfp.cycle();
        let of = |&(core, context): &(usize, usize)| nfp.context_counters(core, context);
        let contexts = started.iter().map(of).fold(ContextCounters::default(), |a, b| a + b);
        let core = nfp.core_counters(0);
        let sum = counter.sum().await?;
        Ok(PcsaRun { cycles, contexts, core, sum })
    })
}

/// Counts addresses in local memory on the first microengine. One context starts up for all, and `contexts` contexts share the
/// updates. The cycles begin when the others wait for the start, and end with the last context.
///
/// # Errors
/// As [`run`], and for more than [`SHARED`] addresses.
pub fn share(
    spec: &NfpSpec,
    elf: &[u8],
    addresses: &[u32],
    contexts: usize,
    interrupt: Option<Arc<AtomicBool>>,
) -> Result<PcsaRun, ExperimentError> {
    if addresses.len() > SHARED {
        let count = addresses.len();
        return Err(ExperimentError::Input(format!(
            "{count} addresses, and local memory has room for {SHARED}; write 1 to {SHARED}"
        )));
    }
    let addresses = addresses.to_vec();
    experiment::run(spec, elf, interrupt, move |nfp, program| async move {
        let counter = Counter::new(&nfp, &program, 1, contexts)?;
        let image = program.image();
        let [given, starter, sharer] =
            ["pcsa_given", "pcsa_share", "pcsa_sharer"].map(|name| image.require(name));
        let (given, starter, sharer) = (given?, starter?, sharer?);
        (1..contexts).for_each(|context| nfp.start(0, context, sharer, &[]));
        // Until they wait: a whole number of cycles at any clock with a period in whole picoseconds.
        nfp.sim().until(nfp.time(BEFORE)).await;
        let words: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        nfp.write_local(Place { core: 0, context: 0 }, given, &words)
            .expect("pcsa.c has local memory for them");
        let all = || {
            (0..contexts)
                .map(|context| nfp.context_counters(0, context))
                .fold(ContextCounters::default(), |a, b| a + b)
        };
        let (begun, contexts_before, core_before) = (nfp.cycle(), all(), nfp.core_counters(0));
        nfp.start(0, 0, starter, &[addresses.len() as u32, contexts as u32]);
        for context in 0..contexts {
            nfp.finished(0, context).await?;
        }
        let cycles = nfp.cycle() - begun;
        let (contexts, core) = (all() - contexts_before, nfp.core_counters(0) - core_before);
        let sum = counter.sum().await?;
        Ok(PcsaRun { cycles, contexts, core, sum })
    })
}

/// The cycle in which [`share`] begins.
const BEFORE: u64 = 3000;

fn check_cores(spec: &NfpSpec, cores: usize) -> Result<(), ExperimentError> {
    if (1..=spec.cores).contains(&cores) {
        return Ok(());
    }
    let most = spec.cores;
    Err(ExperimentError::Input(format!("{cores} microengines, and the card has {most}; write 1 to {most}")))
}

/// Microengines with the program.
struct Counter {
    nfp: Rc<Nfp>,
    program: Rc<Program>,
    cores: usize,
    contexts: usize,
    entry: u32,
}

impl Counter {
    /// Loads the program on the first `cores` microengines.
    fn new(
        nfp: &Rc<Nfp>,
        program: &Rc<Program>,
        cores: usize,
        contexts: usize,
    ) -> Result<Counter, ExperimentError> {
        let entry = program.image().require("pcsa_count")?;
        (0..cores).try_for_each(|core| nfp.load(core, program, contexts))?;
        Ok(Counter { nfp: nfp.clone(), program: program.clone(), cores, contexts, entry })
    }

    fn islands(&self) -> usize {
        self.cores.div_ceil(self.nfp.spec().island)
    }

    /// Starts processes for shares of the addresses, and returns their places: microengine and context.
    fn start(&self, addresses: &[u32]) -> Result<Vec<(usize, usize)>, ExperimentError> {
        let base = self.place(addresses)?;
        let mut started = Vec::new();
        for (process, (first, share)) in shares(addresses.len(), self.cores * self.contexts).enumerate() {
            if share > 0 {
                // Neighbouring parts go to different microengines, so that few processes spread out.
                let (core, context) = (process % self.cores, process / self.cores);
                self.nfp.start(core, context, self.entry, &[base + 4 * first as u32, share as u32]);
                started.push((core, context));
            }
        }
        Ok(started)
    }

    /// Starts all processes with `each` addresses. All islands get the same addresses.
    fn start_islands(&self, addresses: &[u32], each: usize) -> Result<Vec<(usize, usize)>, ExperimentError> {
        let base = self.place(addresses)?;
        let all = (0..self.cores).flat_map(|core| (0..self.contexts).map(move |context| (core, context)));
        let all: Vec<_> = all.collect();
        for &(core, context) in &all {
            let before = (core % self.nfp.spec().island * self.contexts + context) * each;
            self.nfp.start(core, context, self.entry, &[base + 4 * before as u32, each as u32]);
        }
        Ok(all)
    }

    /// Copies addresses into every island's CTM where they fit, into EMEM otherwise, and returns their address.
    fn place(&self, addresses: &[u32]) -> Result<u32, ExperimentError> {
        let words: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
        let kind = match words.len() as u64 <= self.nfp.memory(MemoryKind::Ctm, 0).size() {
            true => MemoryKind::Ctm,
            false => MemoryKind::Emem,
        };
        let copies = if kind.of_island() { self.islands() } else { 1 };
        (0..copies).try_for_each(|island| self.nfp.memory(kind, island).poke(0, &words))?;
        Ok(kind.base())
    }

    /// Waits for processes to end.
    async fn finish(&self, started: &[(usize, usize)]) -> Result<(), ExperimentError> {
        for &(core, context) in started {
            self.nfp.finished(core, context).await?;
        }
        Ok(())
    }

    /// Adds up the sketches of the islands, and returns the sum of their trailing ones.
    async fn sum(&self) -> Result<u32, ExperimentError> {
        let Counter { nfp, program, .. } = self;
        let sum = program.image().require("pcsa_sum")?;
        let first_of = |island: usize| island * nfp.spec().island;
        if self.islands() == 1 {
            nfp.start(0, 0, sum, &[map::CLS]);
            return Ok(nfp.finished(0, 0).await?);
        }
        let merge = program.image().require("pcsa_merge")?;
        (0..self.islands()).for_each(|island| nfp.start(first_of(island), 0, merge, &[map::IMEM, 0, 1]));
        for island in 0..self.islands() {
            nfp.finished(first_of(island), 0).await?;
        }
        nfp.start(0, 0, sum, &[map::IMEM]);
        Ok(nfp.finished(0, 0).await?)
    }
}
