//! Cycles of a frame, from the rows that ran.

use crate::spec::HxdpSpec;
use nicety_ebpf::Trace;

/// The cycles of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// Cycles in which the frame goes into the buffer.
    pub transfer: u64,
    /// Cycles from the frame's first byte in the buffer to the end of the program.
    pub program: u64,
    /// Of those, cycles in which the core waits for bytes of the frame.
    pub waiting: u64,
    /// Of those, cycles of helpers beside their rows.
    pub helpers: u64,
    /// Cycles in which the core has this frame and no other.
    pub core: u64,
}

/// The cycles of a frame of some bytes, and of a program's work on it.
pub fn cycles(spec: &HxdpSpec, trace: &Trace, bytes: u64, keys: &[u64]) -> Cycles {
    let transfer = bytes.div_ceil(spec.transfer.width);
    // No frame is shorter than a cycle's bytes, and the core starts with the last bytes at the latest.
    let start = spec.transfer.start.min(transfer);
    let (mut waiting, mut helpers, mut jumps) = (0, 0, 0);
    let mut calls = trace.helpers.iter().zip(keys).peekable();
    let mut taken = trace.taken.iter().peekable();
    for &(row, byte) in &trace.reach {
        while let Some((&(_, number), &key)) = calls.next_if(|((at, _), _)| *at < row) {
            helpers += helper(spec, number, key);
        }
        while taken.next_if(|&&at| at < row).is_some() {
            jumps += spec.core.taken;
        }
        // The byte is there behind the cycle that brings it.
        let there = u64::from(byte).min(bytes).div_ceil(spec.transfer.width);
        waiting += there.saturating_sub(start + row + waiting + helpers + jumps);
    }
    helpers += calls.map(|(&(_, number), &key)| helper(spec, number, key)).sum::<u64>();
    let drain = if trace.ended_early { 0 } else { spec.core.drain };
    jumps += taken.count() as u64 * spec.core.taken;
    let program = start + trace.rows + waiting + helpers + jumps + drain;
    Cycles { transfer, program, waiting, helpers, core: program.max(transfer) + spec.transfer.handover }
}

/// Cycles of a helper beside its row. A key of a map may take further accesses.
fn helper(spec: &HxdpSpec, number: u32, key: u64) -> u64 {
    spec.helper(number).unwrap_or(0) + key.div_ceil(spec.key).saturating_sub(1)
}
