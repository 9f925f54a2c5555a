//! Instructions that no run of a program reaches, since constants decide jumps. Linux's verifier does not read them.
//!
//! Programs ask so whether a helper, a type of map or a function of the kernel exists. Loaders set further constants: options.

use super::MapDefinition;
use crate::address;
use crate::decode::Code;
use crate::op::{Alu, Op, Step, Width};

/// Registers r0 to r9 with their constants.
type Known = [Option<u64>; 10];

/// Whether a run may reach each step, from those at which functions begin.
pub(super) fn reached(code: &Code, starts: &[usize], maps: &[MapDefinition]) -> Vec<bool> {
    let mut before: Vec<Option<Known>> = vec![None; code.steps.len()];
    let mut waiting = Vec::new();
    for &start in starts {
        join(&mut before, &mut waiting, start, &[None; 10]);
    }
    while let Some(at) = waiting.pop() {
        let Some(mut known) = before[at] else { continue };
        let step = &code.steps[at];
        match step.op {
            Op::Exit => continue,
            Op::Jump => {
                join(&mut before, &mut waiting, step.to as usize, &known);
                continue;
            }
            _ => {}
        }
        let taken = jumps(step, &known);
        if taken != Some(false) {
            join(&mut before, &mut waiting, step.to as usize, &known);
        }
        if taken != Some(true) {
            change(step, maps, &mut known);
            join(&mut before, &mut waiting, at + 1, &known);
        }
    }
    before.iter().map(Option::is_some).collect()
}

/// Keeps the constants that all ways to a step have.
fn join(before: &mut [Option<Known>], waiting: &mut Vec<usize>, at: usize, known: &Known) {
    let Some(place) = before.get_mut(at) else { return };
    let joined = match place {
        None => *known,
        Some(old) => {
            std::array::from_fn(|register| old[register].filter(|_| old[register] == known[register]))
        }
    };
    if *place != Some(joined) {
        *place = Some(joined);
        waiting.push(at);
    }
}

/// Whether a step jumps; none where that depends on the run.
fn jumps(step: &Step, known: &Known) -> Option<bool> {
    let register = |number: u8| known.get(number as usize).copied().flatten();
    let constant = Some(step.imm as u64);
    match step.op {
        Op::Jump64Imm(condition) => Some(condition.holds(register(step.dst)?, constant?)),
        Op::Jump64Reg(condition) => Some(condition.holds(register(step.dst)?, register(step.src)?)),
        Op::Jump32Imm(condition) => Some(condition.holds32(register(step.dst)? as u32, constant? as u32)),
        Op::Jump32Reg(condition) => {
            Some(condition.holds32(register(step.dst)? as u32, register(step.src)? as u32))
        }
        _ => Some(false),
    }
}

/// The constants behind a step.
fn change(step: &Step, maps: &[MapDefinition], known: &mut Known) {
    let register = |number: u8| known.get(number as usize).copied().flatten();
    let (dst, src) = (register(step.dst), register(step.src));
    let low = |value: Option<u64>| value.map(|value| value as u32);
    let constant = step.imm as u64;
    let result = match step.op {
        Op::Constant | Op::Alu64Imm(Alu::Mov) => Some(constant),
        Op::Alu64Reg(Alu::Mov) => src,
        Op::Alu32Imm(Alu::Mov) => Some(u64::from(constant as u32)),
        Op::Alu32Reg(Alu::Mov) => low(src).map(u64::from),
        Op::Alu64Imm(alu) => dst.map(|dst| alu.of64(dst, constant)),
        Op::Alu64Reg(alu) => dst.zip(src).map(|(dst, src)| alu.of64(dst, src)),
        Op::Alu32Imm(alu) => low(dst).map(|dst| u64::from(alu.of32(dst, constant as u32))),
        Op::Alu32Reg(alu) => low(dst).zip(low(src)).map(|(dst, src)| u64::from(alu.of32(dst, src))),
        Op::Load(width) => src.and_then(|src| read(src.wrapping_add(step.to as u64), width, maps)),
        Op::Call | Op::Helper => return known[..6].fill(None),
        // The old value is in the source or in r0.
        Op::Atomic32(_) | Op::Atomic64(_) => {
            known[0] = None;
            return set(known, step.src, None);
        }
        Op::Store(_) | Op::StoreImm(_) | Op::StoreRelease(_) | Op::Jump | Op::Exit => return,
        Op::Jump64Imm(_) | Op::Jump64Reg(_) | Op::Jump32Imm(_) | Op::Jump32Reg(_) => return,
        _ => None,
    };
    set(known, step.dst, result);
}

/// The constant at an address, in a section that neither programs nor users change after the load.
fn read(at: u64, width: Width, maps: &[MapDefinition]) -> Option<u64> {
    let (region, byte) = address::parts(at);
    let map = maps.get(region.checked_sub(address::VALUES)? as usize)?;
    let contents = map.contents.as_ref().filter(|_| map.is_constant())?;
    let bytes = contents.get(byte as usize..)?.get(..width.bytes())?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn set(known: &mut Known, register: u8, value: Option<u64>) {
    if let Some(place) = known.get_mut(register as usize) {
        *place = value;
    }
}
