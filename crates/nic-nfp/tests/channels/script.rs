//! Runs processes that execute a list of steps: `channels_script` of `channels.c`.

use super::Host;
use nicety_nic_nfp::{MemoryKind, map};

/// A step of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Register(u32),
    /// A direct message: target, number of bytes, the first byte, and a timeout in nanoseconds.
    Write(u32, u32, u8, Option<u32>),
    Read(u32, u32, u8, Option<u32>),
    /// An indirect message: target, number of bytes, offset in EMEM, and a timeout in nanoseconds.
    WriteInd(u32, u32, u32, Option<u32>),
    ReadInd(u32, u32, u32, Option<u32>),
    /// A computation of this number of cycles.
    Compute(u32),
}

/// Size of a step in memory in bytes, and the offsets of result and cycle in the step.
const STEP: u64 = 32;
const RESULT: u64 = 24;
const CYCLE: u64 = 28;
/// Number of bytes of IMEM for each process's list.
const LIST: u64 = 4096;

fn forever(timeout: Option<u32>) -> u32 {
    timeout.unwrap_or(u32::MAX)
}

impl Step {
    fn words(self) -> [u32; 6] {
        match self {
            Step::Register(target) => [1, target, 0, 0, 0, 0],
            Step::Write(target, size, first, timeout) => [2, target, size, forever(timeout), 0, first.into()],
            Step::Read(target, size, first, timeout) => [3, target, size, forever(timeout), 0, first.into()],
            Step::WriteInd(target, size, at, timeout) => {
                [4, target, size, forever(timeout), map::EMEM + at, 0]
            }
            Step::ReadInd(target, size, at, timeout) => {
                [5, target, size, forever(timeout), map::EMEM + at, 0]
            }
            Step::Compute(cycles) => [6, 0, cycles, 0, 0, 0],
        }
    }
}

impl Host {
    /// Starts a process with these steps on a context. The program must already be loaded on the microengine.
    pub(super) fn script(&self, list: usize, (core, context): (usize, usize), steps: &[Step]) {
        let imem = self.card.processor().memory(MemoryKind::Imem, 0);
        for (number, step) in steps.iter().enumerate() {
            let bytes: Vec<u8> = step.words().into_iter().flat_map(u32::to_le_bytes).collect();
            imem.poke(list as u64 * LIST + number as u64 * STEP, &bytes).unwrap();
        }
        assert!((steps.len() as u64) < LIST / STEP, "the list has a last step");
        let entry = self.program.image().require("channels_script").unwrap();
        let arguments = [map::IMEM + list as u32 * LIST as u32];
        self.card.processor().start(core, context, entry, &arguments);
    }

    pub(super) fn load(&self, core: usize, contexts: usize) {
        self.card.processor().load(core, &self.program, contexts).unwrap();
    }

    /// Returns the result of a step, and the cycle at which the step ended.
    pub(super) fn ended(&self, list: usize, step: usize) -> (i32, u32) {
        let imem = self.card.processor().memory(MemoryKind::Imem, 0);
        let word = |at| imem.peek_u32(list as u64 * LIST + step as u64 * STEP + at).unwrap();
        (word(RESULT) as i32, word(CYCLE))
    }

    /// Starts a process with list 0, as the only process on its microengine.
    pub(super) fn one_script(&self, steps: &[Step]) {
        self.load(0, 1);
        self.script(0, (0, 0), steps);
    }
}
