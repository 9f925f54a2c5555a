//! Cardinality by probabilistic counting with stochastic averaging: `handlers/nfp/pcsa.c` on microengines.

use super::experiment::{self, ExperimentError, shares};
use super::{ContextCounters, CoreCounters, MemoryKind, Nfp, NfpSpec, Program, map};
use std::rc::Rc;

/// Sketches of the card's program.
pub const SKETCHES: u32 = 2048;

/// Flajolet and Martin's correction: an address in this part of 2^R sets the bits below R.
const PHI: f64 = 0.77351;

/// What counting came to.
#[derive(Clone, Debug, PartialEq)]
pub struct PcsaRun {
    /// Cycles from the start of the processes to the end of the last.
    pub cycles: u64,
    /// Where the contexts' cycles went, of all that counted.
    pub contexts: ContextCounters,
    /// Where the cycles of the first microengine went.
    pub core: CoreCounters,
    /// The trailing ones of all sketches.
    pub sum: u32,
}

impl PcsaRun {
    /// How many distinct addresses there were, about.
    pub fn estimate(&self) -> f64 {
        estimate(self.sum, SKETCHES)
    }
}

/// The estimate from the sum of the trailing ones of that many sketches.
pub fn estimate(sum: u32, sketches: u32) -> f64 {
    let m = f64::from(sketches);
    m / PHI * (f64::from(sum) / m).exp2()
}

/// Counts `addresses` on the first `cores` microengines, `contexts` processes each, and adds up the sketches of their
/// islands. `elf` is `pcsa.c`, compiled for the spec's isa.
///
/// The addresses lie in CTM where they fit, in EMEM otherwise, in equal parts for all processes; a process without
/// any is not started.
///
/// # Errors
/// When there are no such cores or contexts, the program does not fit, or a process is stopped.
pub fn run(
    spec: &NfpSpec,
    elf: &[u8],
    addresses: &[u32],
    cores: usize,
    contexts: usize,
) -> Result<PcsaRun, ExperimentError> {
    if cores == 0 || cores > spec.cores {
        let most = spec.cores;
        return Err(ExperimentError::Input(format!(
            "{cores} microengines, and the card has {most}; write 1 to {most}"
        )));
    }
    let words: Vec<u8> = addresses.iter().flat_map(|address| address.to_le_bytes()).collect();
    let count = addresses.len();
    experiment::run(spec, elf, None, move |nfp, program| async move {
        let kind = match words.len() as u64 <= nfp.memory(MemoryKind::Ctm, 0).size() {
            true => MemoryKind::Ctm,
            false => MemoryKind::Emem,
        };
        for island in 0..spec_islands(&nfp, cores) {
            nfp.memory(kind, island).poke(0, &words)?;
        }
        let entry = program.image().require("pcsa_count")?;
        let mut started = Vec::new();
        for (process, (first, share)) in shares(count, cores * contexts).enumerate() {
            // Neighbouring parts go to different microengines, so that few processes are spread out.
            let (core, context) = (process % cores, process / cores);
            if context == 0 {
                nfp.load(core, &program, contexts)?;
            }
            if share > 0 {
                started.push((core, context, [kind.base() + 4 * first as u32, share as u32]));
            }
        }
        for (core, context, arguments) in &started {
            nfp.start(*core, *context, entry, arguments);
        }
        for (core, context, _) in &started {
            nfp.finished(*core, *context).await?;
        }
        let cycles = nfp.cycle();
        let of = |&(core, context, _): &(usize, usize, [u32; 2])| nfp.context_counters(core, context);
        let sum_of = started.iter().map(of).fold(ContextCounters::default(), |a, b| a + b);
        let core = nfp.core_counters(0);
        let sum = merge(&nfp, &program, cores).await?;
        Ok(PcsaRun { cycles, contexts: sum_of, core, sum })
    })
}

fn spec_islands(nfp: &Nfp, cores: usize) -> usize {
    cores.div_ceil(nfp.spec().island)
}

/// Adds up the sketches of the islands; the sum of their trailing ones.
async fn merge(nfp: &Nfp, program: &Rc<Program>, cores: usize) -> Result<u32, ExperimentError> {
    let (merge, sum) = (program.image().require("pcsa_merge")?, program.image().require("pcsa_sum")?);
    let first_of = |island: usize| island * nfp.spec().island;
    if spec_islands(nfp, cores) == 1 {
        nfp.start(0, 0, sum, &[map::CLS]);
        return Ok(nfp.finished(0, 0).await?);
    }
    for island in 0..spec_islands(nfp, cores) {
        nfp.start(first_of(island), 0, merge, &[map::IMEM]);
    }
    for island in 0..spec_islands(nfp, cores) {
        nfp.finished(first_of(island), 0).await?;
    }
    nfp.start(0, 0, sum, &[map::IMEM]);
    Ok(nfp.finished(0, 0).await?)
}
