//! Counting addresses that come block by block, as many as there are.

use super::{Counter, FEWEST_SKETCHES, check_cores};
use crate::nfp::experiment::{self, ExperimentError};
use crate::nfp::{MemoryKind, NfpSpec};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What counting blocks of addresses came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// Addresses counted.
    pub addresses: u64,
    /// Blocks that they came in.
    pub blocks: u64,
    /// Cycles from the first process's start to the sum.
    pub cycles: u64,
    /// The trailing ones of all sketches.
    pub sum: u32,
}

/// Counts blocks of addresses on the whole card, with `contexts` processes on each microengine, until `next` has no
/// more; it fills the block it is given, which is empty, with no more than [`block`] addresses. A block is counted
/// when the one before it has been. `elf` is `pcsa.c`, compiled for the spec's isa and `sketches`.
///
/// # Errors
/// As [`super::run`], and when CLS has no room for the sketches.
pub fn stream(
    spec: &NfpSpec,
    elf: &[u8],
    contexts: usize,
    sketches: u32,
    interrupt: Option<Arc<AtomicBool>>,
    mut next: impl FnMut(&mut Vec<u32>) + 'static,
) -> Result<Streamed, ExperimentError> {
    check_sketches(spec, sketches)?;
    check_cores(spec, spec.cores)?;
    let cores = spec.cores;
    experiment::run(spec, elf, interrupt, move |nfp, program| async move {
        let counter = Counter::new(&nfp, &program, cores, contexts)?;
        let (mut addresses, mut blocks) = (0, 0);
        let mut block = Vec::new();
        loop {
            block.clear();
            next(&mut block);
            if block.is_empty() {
                break;
            }
            (addresses, blocks) = (addresses + block.len() as u64, blocks + 1);
            let started = counter.start(&block)?;
            counter.finish(&started).await?;
        }
        let sum = counter.sum().await?;
        Ok(Streamed { addresses, blocks, cycles: nfp.cycle(), sum })
    })
}

/// Addresses of a block: as many as an island's CTM holds.
pub fn block(spec: &NfpSpec) -> usize {
    spec.memory(MemoryKind::Ctm).size as usize / 4
}

/// Refuses a number of sketches that the program cannot be compiled for, or CLS has no room for.
///
/// # Errors
/// [`ExperimentError::Input`] with what to write.
pub fn check_sketches(spec: &NfpSpec, sketches: u32) -> Result<(), ExperimentError> {
    let cls = spec.memory(MemoryKind::Cls).size;
    let most = (cls / 4).checked_ilog2().map_or(0, |bits| 1 << bits);
    if sketches.is_power_of_two() && (FEWEST_SKETCHES..=most).contains(&sketches) {
        return Ok(());
    }
    Err(ExperimentError::Input(format!(
        "{sketches} sketches; a power of two from {FEWEST_SKETCHES} to {most} is possible: they are words in CLS, \
         which has {cls} bytes"
    )))
}
