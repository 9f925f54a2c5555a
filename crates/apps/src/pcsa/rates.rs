//! Updates per second of the whole card in steady state.

use super::{Counter, SKETCHES};
use crate::experiment::{self, ExperimentError};
use nicety_nic_nfp::{NfpSpec, crc32};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Updates per second of the whole card, with all microengines busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Where every update sets a new bit: two references.
    pub fresh: f64,
    /// Where the bits are already set, as nearly all are after a while: one reference.
    pub settled: f64,
}

/// Bits of a sketch that [`fresh`] finds addresses for within milliseconds.
const BITS: usize = 8;
/// Maximum addresses that each set a bit of their own.
pub(super) const MOST_FRESH: usize = BITS * SKETCHES as usize;
/// Updates of a process. The second half gives the rate.
const EACH: usize = 96;

/// Returns addresses that each set a new bit, among [`SKETCHES`] sketches that begin empty.
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
    // Every address once, in an order that looks random: the factor is odd.
    (0..=u32::MAX).map(|i| i.wrapping_mul(2_654_435_761)).filter(sets).take(count).collect()
}

/// Runs all microengines, with `contexts` processes each, for a shorter and for a longer time. The rates come from the
/// difference, in which no process starts or ends. `elf` is `pcsa.c` for [`SKETCHES`] sketches.
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

/// Returns the cycles of `each` updates by every process, and of the same updates again.
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
        // Each island has its own sketches, so the islands' addresses may be the same.
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
