//! Counts addresses that the host sends block by block. Their number is unlimited.
//!
//! Each island has a feeder process, and each feeder has a channel to a thread of the host. The host sends every block to all
//! islands at once. Before each block, it sends the number of addresses in the block. At the end the card sends the sum of the
//! trailing ones.

use super::FEWEST_SKETCHES;
use crate::experiment::{self, Bench, ExperimentError};
use nicety_channels::Channel;
use nicety_host::Memory;
use nicety_kernel::join_all;
use nicety_nic_nfp::{Device, MemoryKind, NfpSpec, map};
use nicety_types::{Duration, Path};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Maximum number of addresses in a block, as in `pcsa.c`.
pub const BLOCK: usize = 24_576;
/// Bytes of CTM before the blocks.
const HEAD: usize = 64;
/// The target number of the first feeder.
const TARGET: u32 = 1;

/// The result of counting blocks of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// Number of addresses counted.
    pub addresses: u64,
    /// Number of blocks of addresses.
    pub blocks: u64,
    /// Virtual time from the end of the host's subscriptions until it has received the sum.
    pub time: Duration,
    /// The number of trailing ones, summed over all sketches.
    pub sum: u32,
}

/// Counts the blocks that `next` fills, on the whole card. `next` fills an empty block with at most [`BLOCK`] addresses. This
/// takes no virtual time. `elf` is `pcsa.c`, compiled for the instruction set of the card and for `sketches`. If another thread
/// sets `interrupt`, the run ends.
///
/// # Errors
/// When the card's memories have no room for sketches or blocks, the program does not fit, a process stops, or a channel fails.
pub fn stream(
    spec: &NfpSpec,
    elf: &[u8],
    sketches: u32,
    interrupt: Option<Arc<AtomicBool>>,
    next: impl FnMut(&mut Vec<u32>) + 'static,
) -> Result<Streamed, ExperimentError> {
    check_sketches(spec, sketches)?;
    check_workers(spec)?;
    experiment::run_with_host(spec, elf, interrupt, move |bench| async move {
        let places = start(&bench, sketches)?;
        let device = bench.card.open();
        let mut path = Path::from(bench.sim.now());
        let mut channels = Vec::new();
        for island in 0..bench.card.spec().islands() {
            channels.push(device.subscribe(&mut path, TARGET + island as u32).await?);
        }
        let begun = bench.sim.now();
        let host = Host {
            device,
            memory: &bench.memory,
            blocks: RefCell::new(Blocks { next, addresses: 0, blocks: 0 }),
        };
        let feeding = async {
            let threads = channels.iter().map(|&channel| host.feed(channel, path.clone()));
            join_all(threads).await.into_iter().collect::<Result<Vec<()>, _>>()?;
            let sum = host.device.receive(&mut Path::from(bench.sim.now()), channels[0], 4, None).await?;
            Ok(u32::from_le_bytes(sum[..4].try_into().expect("four bytes")))
        };
        let sum = bench.beside(&places, feeding).await?;
        let time = bench.sim.now().since(begun);
        let Blocks { addresses, blocks, .. } = host.blocks.into_inner();
        Ok(Streamed { addresses, blocks, time, sum })
    })
}

/// Starts feeders and workers on all microengines. Returns their places.
fn start(bench: &Bench, sketches: u32) -> Result<Vec<(usize, usize)>, ExperimentError> {
    let (nfp, image) = (bench.card.processor(), bench.program.image());
    let (feeder, worker) = (image.require("pcsa_feeder")?, image.require("pcsa_worker")?);
    let spec = nfp.spec();
    let islands = spec.islands() as u32;
    // The number of islands that have merged their sketches is stored after the merged sketches.
    let (merged, arrived) = (map::IMEM, map::IMEM + 4 * sketches);
    let mut places = Vec::new();
    for core in 0..spec.cores {
        nfp.load(core, &bench.program, spec.contexts)?;
        let island = core / spec.island;
        let first = island * spec.island;
        let members = spec.island.min(spec.cores - first);
        let workers = members * spec.contexts - 1;
        for context in 0..spec.contexts {
            match (core - first) * spec.contexts + context {
                0 => {
                    let (members, contexts) = (members as u32, spec.contexts as u32);
                    let target = TARGET + island as u32;
                    nfp.start(core, context, feeder, &[target, members, contexts, islands, merged, arrived]);
                }
                number => {
                    let arguments = [first, number - 1, workers].map(|value| value as u32);
                    nfp.start(core, context, worker, &[&arguments[..], &[merged]].concat());
                }
            }
            places.push((core, context));
        }
    }
    Ok(places)
}

/// The source of blocks for all threads of the host.
struct Blocks<N> {
    next: N,
    addresses: u64,
    blocks: u64,
}

/// The state that the host's threads share. Each thread has a channel.
struct Host<'h, N> {
    device: Device,
    memory: &'h Memory,
    blocks: RefCell<Blocks<N>>,
}

impl<N: FnMut(&mut Vec<u32>)> Host<'_, N> {
    /// Sends blocks on one channel until no block is left.
    async fn feed(&self, channel: Channel, mut path: Path) -> Result<(), ExperimentError> {
        let buffer = self.memory.allocate(4 * BLOCK as u64)?;
        let bytes = buffer.bytes().expect("it is no phantom");
        let (mut block, mut words) = (Vec::new(), Vec::new());
        loop {
            block.clear();
            {
                let mut blocks = self.blocks.borrow_mut();
                (blocks.next)(&mut block);
                blocks.addresses += block.len() as u64;
                blocks.blocks += u64::from(!block.is_empty());
            }
            assert!(block.len() <= BLOCK, "a block of {} addresses", block.len());
            let count = block.len() as u32;
            self.device.send(&mut path, channel, &count.to_le_bytes(), None).await?;
            if count == 0 {
                return Ok(());
            }
            words.clear();
            words.extend(block.iter().flat_map(|address| address.to_le_bytes()));
            bytes.write(0, &words);
            self.device.send_indirect(&mut path, channel, buffer.address(), 4 * count, None).await?;
        }
    }
}

/// Returns an error if the program does not support this number of sketches, or if they do not fit CLS.
///
/// # Errors
/// [`ExperimentError::Input`] with a correction.
pub fn check_sketches(spec: &NfpSpec, sketches: u32) -> Result<(), ExperimentError> {
    let cls = spec.memory(MemoryKind::Cls).size;
    let most = (cls / 4).checked_ilog2().map_or(0, |bits| 1 << bits);
    if sketches.is_power_of_two() && (FEWEST_SKETCHES..=most).contains(&sketches) {
        return Ok(());
    }
    Err(ExperimentError::Input(format!(
        "{sketches} sketches; write a power of two from {FEWEST_SKETCHES} to {most}: sketches are words in \
         CLS, which has {cls} bytes"
    )))
}

/// Returns an error if an island of the card has only the feeder's context, or no room for two blocks.
pub(super) fn check_workers(spec: &NfpSpec) -> Result<(), ExperimentError> {
    let last = (spec.cores - 1) % spec.island + 1;
    if last * spec.contexts < 2 {
        return Err(ExperimentError::Input(
            "the last island has only one context, which reads blocks, and no context that counts; give it \
             more contexts (hpu.contexts, hpu.cores)"
                .into(),
        ));
    }
    let (need, ctm) = (HEAD + 2 * 4 * BLOCK, spec.memory(MemoryKind::Ctm).size);
    if need > ctm as usize {
        return Err(ExperimentError::Input(format!(
            "two blocks of addresses take {need} bytes, but CTM has only {ctm} (memory.ctm.size)"
        )));
    }
    Ok(())
}
