//! Stacks of functions that call one another, by Linux's rule.

use super::demand::{Argument, arguments};
use super::fact::{Facts, Known};
use super::facts;
use super::ir::{self, Function, Ins, Kind, Value};
use crate::error::ObjectError;
use crate::object::Linked;
use std::collections::BTreeMap;

/// Bytes of all stacks in a chain of calls.
const MOST_BYTES: i32 = 512;
/// Functions in a chain.
const MOST_FRAMES: usize = 8;
/// Linux counts a frame in multiples of these bytes.
const ROUNDED: i32 = 16;

/// The longest chains from a function on.
#[derive(Clone, Debug)]
struct Chain {
    /// Bytes, and the functions of the chain with most.
    bytes: (i32, Vec<usize>),
    /// The most functions.
    frames: usize,
}

/// Refuses a program with calls that need more stack than Linux gives.
///
/// Only accesses at known distances count, so that others are left to the run.
pub(crate) fn check(linked: &Linked) -> Result<(), ObjectError> {
    if linked.functions.len() < 2 {
        return Ok(());
    }
    let functions = ir::functions(linked)?;
    let of: BTreeMap<usize, &Function> =
        functions.iter().map(|function| (function.first, function)).collect();
    let mut known = BTreeMap::new();
    let mut inside = Vec::new();
    let name = |first: &usize| linked.function(linked.code.slots[*first] as usize).to_owned();
    let refuse = |problem: String| {
        let advice = "use smaller variables, or inline functions";
        Err(ObjectError::refused(format!("program {}", linked.name), problem, advice))
    };
    let Some(chain) = chain(0, &of, &mut known, &mut inside) else {
        return refuse(format!(
            "a chain of calls is endless or far too long; Linux allows at most {MOST_FRAMES} functions in a \
             chain"
        ));
    };
    if chain.frames > MOST_FRAMES {
        let frames = chain.frames;
        return refuse(format!(
            "a chain of calls has {frames} functions; Linux allows at most {MOST_FRAMES}"
        ));
    }
    if chain.bytes.0 > MOST_BYTES {
        let names: Vec<String> = chain.bytes.1.iter().map(name).collect();
        let (bytes, names) = (chain.bytes.0, names.join(", "));
        return refuse(format!(
            "the stacks of {names}, which call one another, take {bytes} bytes; Linux allows {MOST_BYTES}"
        ));
    }
    Ok(())
}

/// The longest chains from a function on; none where it calls itself, or where a chain is far too long.
fn chain(
    first: usize,
    of: &BTreeMap<usize, &Function>,
    known: &mut BTreeMap<usize, Chain>,
    inside: &mut Vec<usize>,
) -> Option<Chain> {
    if let Some(chain) = known.get(&first) {
        return Some(chain.clone());
    }
    if inside.contains(&first) || inside.len() > 1000 {
        return None;
    }
    inside.push(first);
    let (own, callees) = frame(of.get(&first)?);
    let own = (own.max(1) + ROUNDED - 1) / ROUNDED * ROUNDED;
    let mut longest = Chain { bytes: (0, Vec::new()), frames: 0 };
    for callee in callees {
        let next = chain(callee, of, known, inside)?;
        longest.frames = longest.frames.max(next.frames);
        if next.bytes.0 > longest.bytes.0 {
            longest.bytes = next.bytes;
        }
    }
    inside.pop();
    longest.frames += 1;
    longest.bytes.0 += own;
    longest.bytes.1.insert(0, first);
    known.insert(first, longest.clone());
    Some(longest)
}

/// Bytes of stack at known distances, and the functions that a function calls or gives to helpers.
fn frame(function: &Function) -> (i32, Vec<usize>) {
    let (mut bytes, mut callees) = (0, Vec::new());
    let at_blocks = facts::at_blocks(function);
    for ((first, last), at) in function.blocks().into_iter().zip(&at_blocks) {
        let Some(mut now) = *at else { continue };
        for ins in &function.ins[first..=last] {
            bytes = bytes.max(reached(&now, ins));
            match (ins.kind, ins.b) {
                (Kind::Call, _) => callees.push(ins.to as usize),
                (_, Value::Function(callee)) => callees.push(callee as usize),
                _ => {}
            }
            now = facts::after(&now, ins);
        }
    }
    callees.sort_unstable();
    callees.dedup();
    (bytes, callees)
}

/// Bytes of stack that a step needs.
fn reached(facts: &Facts, ins: &Ins) -> i32 {
    let far = |register: usize, to: i32| match facts[register].known {
        Known::Is(Value::Frame(at)) => at.saturating_add(to).saturating_neg(),
        _ => 0,
    };
    match (ins.kind, ins.a) {
        (Kind::Load(..) | Kind::Store(..) | Kind::Atomic(..), Value::Reg(register)) => {
            far(register as usize, ins.to)
        }
        (Kind::Helper(number), _) => {
            let read = (1..).zip(arguments(number)).filter(|(_, argument)| **argument == Argument::Address);
            read.map(|(register, _)| far(register, 0)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::*;

    /// Functions that call the next one each, with bytes of stack.
    fn calls(stacks: &[i16]) -> Result<(), String> {
        let mut slots = Vec::new();
        let mut starts = BTreeMap::new();
        for (number, stack) in stacks.iter().enumerate() {
            starts.insert(slots.len(), format!("f{number}"));
            if *stack > 0 {
                slots.push(store_imm(B, 10, -stack, 0));
            }
            if number + 1 < stacks.len() {
                slots.push(call_local(2));
            }
            slots.extend([mov_imm(0, 0), exit()]);
        }
        let mut linked = Linked::of_slots("f0", slots).unwrap();
        linked.functions = starts;
        check(&linked).map_err(|error| error.to_string())
    }

    #[test]
    fn stacks_in_a_chain_have_512_bytes() {
        assert_eq!(calls(&[256, 256]), Ok(()));
        assert_eq!(calls(&[512]), Ok(()));
        let problem =
            "program f0: the stacks of f0, f1, which call one another, take 528 bytes; Linux allows 512";
        assert_eq!(calls(&[512, 8]), Err(format!("{problem}; use smaller variables, or inline functions")));
        // A frame without stack counts as well.
        assert!(calls(&[512, 0]).is_err());
        assert_eq!(calls(&[496, 0]), Ok(()));
    }

    #[test]
    fn a_chain_has_eight_functions() {
        assert_eq!(calls(&[8; 8]), Ok(()));
        let error = calls(&[8; 9]).unwrap_err();
        assert!(error.contains("a chain of calls has 9 functions; Linux allows at most 8"), "{error}");
        assert!(calls(&[0; 2000]).unwrap_err().contains("is endless or far too long"));
    }

    #[test]
    fn the_largest_chain_counts_and_buffers_of_helpers_too() {
        let slots = vec![
            call_local(5),
            mov(1, 10),
            alu64_imm(ADD, 1, -400),
            mov_imm(2, 4),
            call(crate::Helper::TracePrintk),
            exit(),
            store_imm(DW, 10, -120, 0),
            mov_imm(0, 0),
            exit(),
        ];
        let mut linked = Linked::of_slots("main", slots).unwrap();
        linked.functions = BTreeMap::from([(0, "main".to_owned()), (6, "other".to_owned())]);
        // 400 and 128 bytes.
        assert!(check(&linked).unwrap_err().to_string().contains("take 528 bytes"));
    }
}
