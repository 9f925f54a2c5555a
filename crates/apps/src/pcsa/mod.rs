//! Cardinality by probabilistic counting with stochastic averaging (PCSA). `handlers/nfp/pcsa.c` does this on microengines.
//!
//! - [`share`]: the contexts of one microengine share a few addresses, and the use of their cycles is measured.
//! - [`run`]: addresses in a memory of the card are divided among any number of contexts.
//! - [`rates`]: updates per second of the whole card (`rates.rs`).
//! - [`stream`]: the host sends addresses to the card (`stream.rs`).
//! - [`replay`]: packets are replayed into the port, and the card finds their source addresses (`replay.rs`).

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
/// Minimum number of sketches. This is the number that one memory reference transfers.
pub const FEWEST_SKETCHES: u32 = 16;

/// Maximum number of addresses for [`share`]. As many fit the local memory of `pcsa.c`.
pub const SHARED: usize = 256;

/// Flajolet and Martin's correction factor: `n` addresses in one sketch give R trailing ones, with 2^R = 0.77351 `n` on average.
const PHI: f64 = 0.77351;

/// The result of counting.
#[derive(Clone, Debug, PartialEq)]
pub struct PcsaRun {
    /// Cycles from the start of the processes to the end of the last process.
    pub cycles: u64,
    /// The use of cycles, summed over all counting contexts.
    pub contexts: ContextCounters,
    /// The use of cycles on the first microengine.
    pub core: CoreCounters,
    /// The number of trailing ones, summed over all sketches.
    pub sum: u32,
}

impl PcsaRun {
    /// Estimates the number of distinct addresses, with [`SKETCHES`] sketches.
    pub fn estimate(&self) -> f64 {
        estimate(self.sum, SKETCHES)
    }
}

/// Estimates the number of distinct addresses. `sum` is the number of trailing ones, summed over `sketches` sketches.
pub fn estimate(sum: u32, sketches: u32) -> f64 {
    let m = f64::from(sketches);
    m / PHI * (f64::from(sum) / m).exp2()
}

/// Returns Flajolet and Martin's standard error with this number of sketches, as a fraction of the counted number.
pub fn standard_error(sketches: u32) -> f64 {
    0.78 / f64::from(sketches).sqrt()
}

/// Counts `addresses` on the first `cores` microengines, with `contexts` processes on each. Then merges the sketches of the
/// islands. `elf` is `pcsa.c`, compiled for the instruction set of the card. If another thread sets `interrupt`, the run ends.
///
/// The addresses are in CTM if they fit, and in EMEM otherwise. They are divided equally among the processes. A process without
/// addresses is not started.
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

/// Counts addresses in local memory on the first microengine. Context 0 prepares the count for all contexts, and then `contexts`
/// contexts share the updates. The measured cycles begin while the other contexts wait for context 0. They end with the last
/// context.
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
            "{count} addresses, but local memory has room for {SHARED}; write 1 to {SHARED}"
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
        // Waits until the other contexts wait for context 0. The time is a whole number of cycles for every clock with a period
        // in whole picoseconds.
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

/// The number of the cycle in which the measurement of [`share`] begins.
const BEFORE: u64 = 3000;

fn check_cores(spec: &NfpSpec, cores: usize) -> Result<(), ExperimentError> {
    if (1..=spec.cores).contains(&cores) {
        return Ok(());
    }
    let most = spec.cores;
    Err(ExperimentError::Input(format!("{cores} microengines, but the card has {most}; write 1 to {most}")))
}

/// Microengines that are loaded with the program.
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

    /// Starts processes, each with a share of the addresses. Returns their places: microengine and context.
    fn start(&self, addresses: &[u32]) -> Result<Vec<(usize, usize)>, ExperimentError> {
        let base = self.place(addresses)?;
        let mut started = Vec::new();
        for (process, (first, share)) in shares(addresses.len(), self.cores * self.contexts).enumerate() {
            if share > 0 {
                // Consecutive shares go to different microengines, so that a few processes are on different microengines.
                let (core, context) = (process % self.cores, process / self.cores);
                self.nfp.start(core, context, self.entry, &[base + 4 * first as u32, share as u32]);
                started.push((core, context));
            }
        }
        Ok(started)
    }

    /// Starts all processes, each with `each` addresses. All islands get the same addresses.
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

    /// Copies the addresses into the CTM of every island if they fit, and into EMEM otherwise. Returns the address of the copy.
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

    /// Waits until processes have ended.
    async fn finish(&self, started: &[(usize, usize)]) -> Result<(), ExperimentError> {
        for &(core, context) in started {
            self.nfp.finished(core, context).await?;
        }
        Ok(())
    }

    /// Merges the sketches of the islands. Returns the number of trailing ones, summed over all sketches.
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
