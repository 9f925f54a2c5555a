//! Programs that Linux refuses to offload to a network flow processor.
//!
//! Linux's verifier takes a program first, and then its driver looks at each instruction: `nfp/bpf/verifier.c` of Linux 6.18, and
//! `nfp/bpf/jit.c` for what has no code. Texts name the function that refuses. Where this pass does not know a value, it assumes the
//! best.

use super::fact::{Known, Note, Place, WORD};
use super::ir::{Function, Ins, Kind, Value};
use super::uses::Uses;
use super::{facts, ir, refuse};
use crate::error::ObjectError;
use crate::helper::{self, Helper};
use crate::instruction::{CONSTANT_FUNCTION, CONSTANT_MAP, CONSTANT_VALUE};
use crate::map::MapKind;
use crate::object::{Linked, MapDefinition};
use crate::op::{Alu, Atomic, Op, Width};
use serde::{Deserialize, Serialize};

/// The limits of a card's firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Offload {
    /// Bytes of stack.
    pub stack: u32,
    /// Instructions of a translated program.
    pub instructions: u32,
    /// Maps.
    pub maps: u32,
    /// Entries of all maps together.
    pub entries: u64,
    /// Bytes of a key, and of a value.
    pub key: u32,
    /// See `key`.
    pub value: u32,
    /// Bytes of a key and a value together, each filled up to 8.
    pub entry: u32,
    /// Whether programs may update and delete entries.
    pub updates: bool,
}

/// The `ALU64 | END` of eBPF: bswap.
const SWAP: u8 = 0xd7;

/// Refuses a program that Linux does not offload.
///
/// # Errors
/// There is such an instruction, map or size: its place, the function of Linux, and what to write.
pub fn check_offload(linked: &Linked, maps: &[MapDefinition], limits: &Offload) -> Result<(), ObjectError> {
    check_maps(linked, maps, limits)?;
    for (at, step) in linked.code.steps.iter().enumerate() {
        check_step(linked, at, step.op)?;
    }
    let functions = ir::functions(linked)?;
    let mut depths = Vec::new();
    let mut uses = Uses::default();
    for mut function in functions {
        uses.check(linked, maps, &function)?;
        let blocks = facts::at_blocks(&function);
        let mut reached = vec![false; function.ins.len()];
        for ((first, last), facts) in function.blocks().into_iter().zip(&blocks) {
            reached[first..=last].fill(facts.is_some());
        }
        let notes = facts::rewrite(&mut function, &blocks, true);
        for at in (0..function.ins.len()).filter(|&at| reached[at]) {
            Pass { linked, function: &function, limits }.check(at, &notes[at])?;
        }
        depths.push((function.first, depth(&function), callees(&function)));
    }
    let used = deepest(&depths, 0, 0);
    match used > i64::from(limits.stack) {
        true => Err(ObjectError::refused(
            format!("program {}", linked.name),
            format!(
                "it uses {used} bytes of stack, but the firmware has {} (xdp.stack; nfp_bpf_finalize)",
                limits.stack
            ),
            "use fewer local variables",
        )),
        false => Ok(()),
    }
}

/// Refuses a translated program that is too long for the firmware.
///
/// # Errors
/// The program is too long.
pub fn check_length(name: &str, instructions: usize, limits: &Offload) -> Result<(), ObjectError> {
    if instructions <= limits.instructions as usize {
        return Ok(());
    }
    let problem = format!(
        "its code has {instructions} instructions of the card, but the firmware has room for {} \
         (xdp.program; nfp_net_bpf_load)",
        limits.instructions
    );
    Err(ObjectError::refused(format!("program {name}"), problem, "make it shorter"))
}

fn check_maps(linked: &Linked, maps: &[MapDefinition], limits: &Offload) -> Result<(), ObjectError> {
    let mut used: Vec<usize> = Vec::new();
    for (at, step) in linked.code.steps.iter().enumerate() {
        let slot = &linked.slots[linked.code.slots[at] as usize];
        if step.op == Op::Constant && [CONSTANT_MAP, CONSTANT_VALUE].contains(&slot.src) {
            used.push(slot.imm as u32 as usize);
        }
    }
    used.sort_unstable();
    used.dedup();
    let (mut count, mut entries) = (0, 0);
    for map in used.into_iter().filter_map(|number| maps.get(number)) {
        check_map(map, limits)?;
        count += 1;
        entries += u64::from(map.max_entries);
    }
    let wrong = |problem: String| {
        Err(ObjectError::refused(format!("program {}", linked.name), problem, "use fewer or smaller maps"))
    };
    if count > limits.maps {
        return wrong(format!(
            "it has {count} maps, but the firmware allows {} (xdp.maps; nfp_bpf_map_alloc)",
            limits.maps
        ));
    }
    if entries > limits.entries {
        let most = limits.entries;
        return wrong(format!(
            "its maps have {entries} entries, but the firmware allows {most} (xdp.entries; \
             nfp_bpf_map_alloc)"
        ));
    }
    Ok(())
}

fn check_map(map: &MapDefinition, limits: &Offload) -> Result<(), ObjectError> {
    let refused = |problem: String, advice: &str| {
        Err(ObjectError::refused(format!("map {}", map.name), problem, advice))
    };
    if map.contents.is_some() {
        let problem = "global variables and constants are an array with flags, which is not offloaded (nfp_bpf_map_alloc)";
        return refused(problem.to_owned(), "keep variables in an array, and constants in the code");
    }
    match MapKind::of(map.kind) {
        Some(MapKind::Hash | MapKind::Array) => {}
        Some(MapKind::PerfEvents) => {
            let problem = "the firmware has no perf_event_output (nfp_bpf_check_helper_call)";
            return refused(problem.to_owned(), "count in an array instead");
        }
        kind => {
            let name = kind.map_or("unknown", MapKind::name);
            let problem = format!("a map of type {name} is not offloaded (bpf_map_offload_map_alloc)");
            return refused(problem, "use an array or a hash");
        }
    }
    if map.flags != 0 {
        let problem =
            format!("maps with flags, here {:#x}, are not offloaded (nfp_bpf_map_alloc)", map.flags);
        return refused(problem, "leave map_flags out");
    }
    let (key, value) = (map.key_size, map.value_size);
    let entry = u64::from(key).next_multiple_of(8) + u64::from(value).next_multiple_of(8);
    let sizes = [
        ("its key has", u64::from(key), limits.key, "xdp.keys"),
        ("its value has", u64::from(value), limits.value, "xdp.values"),
        ("key and value, each filled up to 8 bytes, have", entry, limits.entry, "xdp.entry"),
    ];
    match sizes.into_iter().find(|(_, size, most, _)| *size > u64::from(*most)) {
        None => Ok(()),
        Some((what, size, most, key)) => {
            let problem = format!(
                "{what} {size} bytes, but the firmware takes at most {most} ({key}; nfp_bpf_map_alloc)"
            );
            refused(problem, "make it smaller")
        }
    }
}

/// Refuses an instruction for which the driver has no code.
fn check_step(linked: &Linked, at: usize, op: Op) -> Result<(), ObjectError> {
    let slot = &linked.slots[linked.code.slots[at] as usize];
    let no_code = "(nfp_bpf_supported_opcode)";
    let refused = |problem: &str, advice: &str| refuse(linked, at, &format!("{problem} {no_code}"), advice);
    match op {
        Op::Alu64Imm(alu) | Op::Alu64Reg(alu) | Op::Alu32Imm(alu) | Op::Alu32Reg(alu) => match alu {
            Alu::Mod | Alu::SignedMod => {
                refused("the card has no remainder", "take the remainder by a power of two, as x & 255")
            }
            Alu::SignedDiv => refused("the card has no signed division", "divide an unsigned number"),
            _ => Ok(()),
        },
        Op::Extend64(_) | Op::Extend32(_) | Op::LoadSigned(_) => {
            refused("the card has no instruction that extends a sign", "compile it for -mcpu=v3")
        }
        Op::Swap(_) if slot.code == SWAP => refused("the card has no bswap", "compile it for -mcpu=v3"),
        Op::LoadAcquire(_) | Op::StoreRelease(_) => {
            refused("the card has no loads and stores with order", "compile it for -mcpu=v3")
        }
        Op::Atomic32(atomic) | Op::Atomic64(atomic) if atomic != Atomic::Add => refuse(
            linked,
            at,
            "the card's only atomic operation is an addition without the old value (nfp_bpf_check_atomic)",
            "write __atomic_fetch_add(..., __ATOMIC_RELAXED) and leave its result",
        ),
        Op::Constant if slot.src == CONSTANT_FUNCTION => {
            refused("the card has no callbacks", "write the loop in the program")
        }
        _ => Ok(()),
    }
}

/// The check of an instruction with the knowledge of its operands.
struct Pass<'p> {
    linked: &'p Linked,
    function: &'p Function,
    limits: &'p Offload,
}

impl Pass<'_> {
    fn refuse(&self, at: usize, problem: &str, advice: &str) -> Result<(), ObjectError> {
        refuse(self.linked, self.function.first + at, problem, advice)
    }

    fn check(&self, at: usize, note: &Note) -> Result<(), ObjectError> {
        let ins = &self.function.ins[at];
        match ins.kind {
            Kind::Alu(Alu::Div, _) => self.check_division(at, ins, note),
            Kind::Alu(Alu::Mul, true) => {
                let negative = matches!(ins.b, Value::Const(number) if number < 0);
                let wide = note.a > WORD || (!matches!(ins.b, Value::Const(_)) && note.b > WORD);
                match negative || wide {
                    true => self.refuse(
                        at,
                        "it multiplies a number that may have more than 32 bits (nfp_bpf_check_alu)",
                        "multiply __u32 numbers",
                    ),
                    false => Ok(()),
                }
            }
            Kind::Load(width, ..) => self.check_load(at, ins, note, width),
            Kind::Store(..) => self.check_store(at, ins, note),
            Kind::Atomic(..) if !matches!(note.place, Place::Value | Place::Present | Place::Unknown) => self
                .refuse(
                    at,
                    "an atomic addition outside a map's value (nfp_bpf_check_atomic)",
                    "add without atomics there",
                ),
            Kind::Helper(number) => self.check_helper(at, number, note),
            _ => Ok(()),
        }
    }

    fn check_division(&self, at: usize, ins: &Ins, note: &Note) -> Result<(), ObjectError> {
        let divisor = match ins.b {
            Value::Const(number) => Some(number),
            _ => note.number,
        };
        match divisor {
            None => self.refuse(
                at,
                "the divisor is no constant (nfp_bpf_check_alu)",
                "divide by a constant, or compare instead",
            ),
            Some(..=-1) => self.refuse(
                at,
                "it divides by a negative constant (nfp_bpf_check_alu)",
                "divide by a positive one",
            ),
            Some(_) if note.a > WORD => self.refuse(
                at,
                "it divides a number that may have more than 32 bits (nfp_bpf_check_alu)",
                "divide a __u32",
            ),
            Some(_) => Ok(()),
        }
    }

    fn check_load(&self, at: usize, ins: &Ins, note: &Note, width: Width) -> Result<(), ObjectError> {
        if note.place == Place::Context && !([0, 4].contains(&ins.to) && width == Width::B4) {
            let problem = "the card has only data and data_end of the context (mem_ldx_xdp)";
            return self.refuse(at, problem, "leave the other members out");
        }
        self.check_stack(at, ins, note)
    }

    fn check_store(&self, at: usize, ins: &Ins, note: &Note) -> Result<(), ObjectError> {
        if matches!(note.place, Place::Value | Place::Present) {
            return self.refuse(
                at,
                "it writes a map's value by a pointer (nfp_bpf_check_ptr)",
                "count with __atomic_fetch_add(..., __ATOMIC_RELAXED)",
            );
        }
        let step = &self.linked.code.steps[self.function.first + at];
        let constant = matches!(step.op, Op::StoreImm(_));
        if constant && !matches!(note.place, Place::Packet | Place::Unknown) {
            return self.refuse(
                at,
                "a store of a constant outside the packet (mem_st)",
                "compile it for -mcpu=v3, which stores registers",
            );
        }
        self.check_stack(at, ins, note)
    }

    fn check_stack(&self, at: usize, ins: &Ins, note: &Note) -> Result<(), ObjectError> {
        match note.place == Place::Stack && !matches!(ins.a, Value::Frame(_)) {
            true => self.refuse(
                at,
                "an access to the stack at a place that is known at run time (nfp_bpf_check_stack_access)",
                "use separate variables in place of the array",
            ),
            false => Ok(()),
        }
    }

    fn check_helper(&self, at: usize, number: u32, note: &Note) -> Result<(), ObjectError> {
        let name = helper::name(number).unwrap_or("unknown");
        match Helper::of(number) {
            Some(Helper::AdjustHead | Helper::AdjustTail | Helper::Random) => Ok(()),
            Some(Helper::MapLookup) => self.check_key(at, name, note),
            Some(Helper::MapUpdate | Helper::MapDelete) if self.limits.updates => {
                self.check_key(at, name, note)
            }
            Some(Helper::MapUpdate | Helper::MapDelete | Helper::PerfEventOutput) => self.refuse(
                at,
                &format!("{name}: the firmware lacks it (xdp.updates; nfp_bpf_check_helper_call)"),
                "let the host change maps, and count with __atomic_fetch_add(..., __ATOMIC_RELAXED)",
            ),
            _ => self.refuse(
                at,
                &format!("{name} is not offloaded (nfp_bpf_check_helper_call)"),
                "write a program without it",
            ),
        }
    }

    /// The key is on the stack, at a known place, in whole words.
    fn check_key(&self, at: usize, name: &str, note: &Note) -> Result<(), ObjectError> {
        match note.arguments[1] {
            Known::Is(Value::Frame(place)) if place % 4 == 0 => Ok(()),
            Known::Is(Value::Frame(_)) => self.refuse(
                at,
                &format!("{name}: its key is misaligned on the stack (nfp_bpf_stack_arg_ok)"),
                "align the key to 4 bytes",
            ),
            _ => self.refuse(
                at,
                &format!("{name}: its key is not at a known place of the stack (nfp_bpf_stack_arg_ok)"),
                "copy the key to a local variable",
            ),
        }
    }
}

/// Bytes of stack that a function names.
fn depth(function: &Function) -> i64 {
    let far = |value: Value, to: i32| if let Value::Frame(at) = value { -i64::from(at + to) } else { 0 };
    let of = |ins: &Ins| match ins.kind {
        Kind::Load(..) | Kind::Store(..) | Kind::Atomic(..) => far(ins.a, ins.to),
        Kind::Alu(Alu::Mov, true) => far(ins.b, 0),
        _ => 0,
    };
    function.ins.iter().map(of).max().unwrap_or(0).max(0)
}

fn callees(function: &Function) -> Vec<usize> {
    let calls = function.ins.iter().filter(|ins| ins.kind == Kind::Call);
    calls.map(|ins| ins.to as usize).collect()
}

/// The most functions of a chain of calls, as in Linux.
const DEEPEST: usize = 8;

/// Bytes of the stacks of a function and its callees: a called one also keeps its return address and four registers of 8 bytes.
fn deepest(functions: &[(usize, i64, Vec<usize>)], first: usize, calls: usize) -> i64 {
    let Some((_, own, callees)) = functions.iter().find(|function| function.0 == first) else { return 0 };
    let kept = if calls > 0 { 4 + 4 * 8 } else { 0 };
    let below = match calls < DEEPEST {
        true => callees.iter().map(|&callee| deepest(functions, callee, calls + 1)).max().unwrap_or(0),
        false => 0,
    };
    (own + kept + 15) / 16 * 16 + below
}
