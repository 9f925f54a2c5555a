//! Updates per second of the whole card, in steady state.

use super::{Counter, SKETCHES};
use crate::experiment::{self, ExperimentError};
use nicety_nic_nfp::{NfpSpec, crc32};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Updates per second of the whole card, with all microengines busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// If every update sets a new bit, which takes two memory references.
    pub fresh: f64,
    /// If all bits are already set, which takes one memory reference. After a while nearly all bits are set.
    pub settled: f64,
}

/// Number of bits in a sketch for which [`fresh`] finds addresses within milliseconds of real time.
const BITS: usize = 8;
/// Maximum number of addresses that each set a different bit.
pub(super) const MOST_FRESH: usize = BITS * SKETCHES as usize;
/// Number of updates of a process. The second half of them gives the rate.
const EACH: usize = 96;

/// Returns addresses that each set a different bit, in [`SKETCHES`] sketches that are empty at the start.
///
/// # Panics
/// When `count` is above 16384.
pub fn fresh(count: usize) -> Vec<u32> {
    assert!(count <= MOST_FRESH, "{count} addresses; {MOST_FRESH} at most");
    let mut sketches = vec![0u32; SKETCHES as usize];
    let sets = |&address: &u32| {
        let hash = crc32(0, address);
        let bit = 1 << (hash / SKETCHES).trailing_ones();
        let sketch = &mut sketches[(hash % SKETCHES) as usize];
        let new = *sketch & bit == 0;
        *sketch |= bit;
        new
    };
    // Every address occurs once, in an order that looks random, because the factor is odd.
    (0..=u32::MAX).map(|i| i.wrapping_mul(2_654_435_761)).filter(sets).take(count).collect()
}

/// Runs all microengines with `contexts` processes on each, once for a short and once for a long time. The rates are computed
/// from the difference of both runs, so they contain no start and no end of a process. `elf` is `pcsa.c`, compiled for
/// [`SKETCHES`] sketches.
///
/// # Errors
/// As [`super::run`].
pub fn rates(
    spec: &NfpSpec,
    elf: &[u8],
    contexts: usize,
    interrupt: Option<&Arc<AtomicBool>>,
) -> Result<Rates, ExperimentError> {
    let of_island = spec.island.min(spec.cores) * contexts;
    let longer = (MOST_FRESH / of_island.max(1)).clamp(2, EACH);
    let shorter = longer / 2;
    let [short, long] = [shorter, longer].map(|each| twice(spec, elf, contexts, each, interrupt.cloned()));
    let (short, long) = (short?, long?);
    let more = (spec.cores * contexts * (longer - shorter)) as f64;
    let [fresh, settled] =
        [0, 1].map(|pass| more / (long[pass] - short[pass]) as f64 * spec.clock.hz() as f64);
    Ok(Rates { fresh, settled })
}

/// Returns the cycles in which every process makes `each` updates, and the cycles in which it makes the same updates again.
fn twice(
    spec: &NfpSpec,
    elf: &[u8],
    contexts: usize,
    each: usize,
    interrupt: Option<Arc<AtomicBool>>,
) -> Result<[u64; 2], ExperimentError> {
    let (cores, island) = (spec.cores, spec.island);
    experiment::run(spec, elf, interrupt, move |nfp, program| async move {
        let counter = Counter::new(&nfp, &program, cores, contexts)?;
        // Each island has its own sketches, so all islands may have the same addresses.
        let addresses = fresh(each * contexts * island.min(cores));
        let mut cycles = [0; 2];
        for pass in &mut cycles {
            let begun = nfp.cycle();
            let started = counter.start_islands(&addresses, each)?;
            counter.finish(&started).await?;
            *pass = nfp.cycle() - begun;
        }
        Ok(cycles)
    })
}
