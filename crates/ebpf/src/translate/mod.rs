//! Translates linked programs to RISC-V assembly, for RV32 and RV64. The text is for clang and for binutils.
//!
//! # Registers
//! | eBPF | RV64 | RV32, low and high half |
//! |---|---|---|
//! | r0 | a5 | t3, t4 |
//! | r1 to r4 | a0 to a3 | a0 to a7 |
//! | r5 | a4 | t5, t6; on the stack in calls of helpers |
//! | r6 to r9 | s1 to s4, or t3 to t6 where no call comes between a write and a read | s0 to s7 |
//! | r10 | sp plus a constant | sp plus a constant |
//!
//! # Names
//! - `nicety_xdp_program_NAME`: `uint32_t (struct xdp_md *)`.
//! - `nicety_bpf_HELPER`: `uint64_t (uint64_t, ...)`, with the arguments of Linux's helper.
//! - `nicety_map_NAME`: a map's descriptor, and `nicety_map_memory_NAME` its memory.
//! - `nicety_data_SECTION`: the bytes of a data section.
//!
//! A helper's arguments have undefined upper bits where Linux has a 32-bit number, and on RV32 where it has an address. The memory
//! of an array has values of a multiple of 8 bytes each. A per-CPU array has the values of all cores for each entry, and an array of
//! programs has addresses of code.
//!
//! # Promises of a program
//! Linux's verifier proves that a pointer stays inside its memory; here a pointer plus or minus a number never leaves 32 bits. In
//! RV32 code, a 64-bit atomic operation takes one of the locks in [`LOCK_NAME`], and plain 64-bit accesses are two of 32 bits.

mod aborts;
mod bounds;
mod bytes;
mod calls;
mod code;
mod copies;
mod debug;
mod demand;
mod direct;
mod early_out;
mod fact;
mod facts;
pub(crate) mod frames;
mod guard;
mod hashes;
mod inline;
mod ir;
mod names;
mod offload;
mod reciprocal;
mod refused;
mod rv32;
mod rv32_jumps;
mod rv32_memory;
mod rv64;
mod schedule;
mod sites;
mod stack;
mod stores;
mod sums;
mod text;
mod uses;

pub use offload::{Offload, check_length, check_offload};
pub use refused::check_verified;
pub use sites::ABORTED_NAME;

use crate::aborted::Site;
use crate::card::plain;
use crate::error::ObjectError;
use crate::helper::Helper;
use crate::instruction::{CONSTANT_MAP, CONSTANT_VALUE};
use crate::map::MapKind;
use crate::object::{Linked, MapDefinition, Object};
use crate::op::Op;
use code::Coder;
use demand::Rules;
use fact::Facts;
use ir::{Function, Kind, Value};
use sites::Aborts;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes of a function's stack.
const STACK: i32 = 512;
/// Locks of 64-bit atomic operations in RV32 code, eight bytes from one to the next.
pub const LOCKS: usize = 64;
/// The name of these locks.
pub const LOCK_NAME: &str = "nicety_xdp_locks";

/// The instruction set of a card's cores, as far as the translation asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    /// Whether registers have 64 bits.
    pub wide: bool,
    /// Extensions that make code shorter.
    pub zba: bool,
    /// See `zba`.
    pub zbb: bool,
    /// Whether it divides. Without, a program divides by constants alone.
    pub divides: bool,
}

impl Isa {
    /// Reads a text such as `rv32imac_zicsr`.
    ///
    /// # Errors
    /// It is no RISC-V instruction set, or it lacks A, or M and Zmmul.
    pub fn read(text: &str) -> Result<Isa, ObjectError> {
        let refuse = |problem: &str| {
            Err(ObjectError::refused(format!("isa {text}"), problem, "write rv32imac or rv64imac"))
        };
        let (wide, rest) = match (text.strip_prefix("rv32"), text.strip_prefix("rv64")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return refuse("an XDP program runs on RV32 or RV64"),
        };
        let mut parts = rest.split('_');
        let letters = parts.next().unwrap_or_default();
        let longer: Vec<&str> = parts.collect();
        let divides = letters.contains('m');
        let multiplies = divides || (!wide && longer.contains(&"zmmul"));
        if !multiplies || !letters.contains('a') {
            return refuse("an XDP program needs the extensions M and A");
        }
        let has = |name: &str| letters.contains('b') || longer.contains(&"b") || longer.contains(&name);
        Ok(Isa { wide, zba: has("zba"), zbb: has("zbb"), divides })
    }
}

/// The core of a card, and its maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The instruction set.
    pub isa: Isa,
    /// Whether the core makes misaligned accesses. Otherwise code reads and writes bytes where an address may be misaligned. An IP
    /// header behind 14 bytes of Ethernet is: cards do not pad frames as Linux does for such processors.
    pub misaligned: bool,
    /// Cores, each with a value of its own in per-CPU maps.
    pub cpus: u32,
    /// Cores of a cluster where `mhartid` has the core in five bits and the cluster above them, as PsPIN has it.
    pub cluster: Option<u32>,
    /// Whether the code checks each access and each argument of a helper. Linux's verifier would refuse such a program.
    pub unverified: bool,
    /// Bytes of headroom before a frame.
    pub headroom: u32,
    /// Bytes of the longest frame that the card sends.
    pub longest: u32,
    /// Whether a program may be the card's frame handler itself. Its argument is then a frame, and its result a destination.
    pub frames: bool,
    /// Whether maps have the memory of [`crate::card`], so that lookups in hashes can be in place.
    pub hashes: bool,
    /// Whether the core is a context of a network flow processor: its memories add, and its firmware looks up in arrays.
    pub flow_processor: bool,
}

/// A translated program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// The text.
    pub assembly: String,
    /// Numbers of the maps that the text names, in their order.
    pub maps: Vec<usize>,
    /// Names of the functions for C, by program.
    pub programs: Vec<(String, String)>,
    /// Names of the code that an array of programs has, by program.
    pub targets: Vec<(String, String)>,
    /// Helpers that the text calls.
    pub helpers: Vec<Helper>,
    /// Instructions of eBPF.
    pub instructions: usize,
    /// Instructions and pseudo-instructions of the text.
    pub lines: usize,
    /// Places where a program can end with `XDP_ABORTED`, in the order of their counters ([`ABORTED_NAME`]).
    pub sites: Vec<Site>,
    /// The place without a counter, if there is one: frames that no counter has are its.
    pub rest: Option<usize>,
    /// Whether the program is the card's frame handler itself.
    pub direct: bool,
}

/// A program with its names.
pub(crate) struct Program<'p> {
    linked: &'p Linked,
    /// The function for C.
    symbol: String,
    /// Whether programs of the translation call others in their place.
    tail: bool,
    files: &'p BTreeMap<String, usize>,
}

impl Program<'_> {
    fn file(&self, name: &str) -> usize {
        self.files.get(name).copied().unwrap_or(1)
    }
}

/// Translates a program of an object, and with tail calls all others that can be linked.
///
/// # Errors
/// The program cannot be linked, or the card cannot run it.
pub fn translate(object: &Object, program: &str, options: &Options) -> Result<Translation, ObjectError> {
    programs(&object.maps, &linked(object, program)?, options)
}

/// A linked program of an object, and with tail calls all others that can be linked.
///
/// # Errors
/// The program cannot be linked.
pub fn linked(object: &Object, program: &str) -> Result<Vec<Linked>, ObjectError> {
    let main = object.link(object.program(Some(program))?)?;
    let mut all = vec![main];
    if all[0].helpers().contains(&Helper::TailCall) {
        let others = object.programs.iter().filter(|entry| entry.name != program);
        all.extend(others.filter_map(|entry| object.link(entry).ok()));
    }
    Ok(all)
}

/// Translates linked programs that share maps.
///
/// # Errors
/// A card cannot run one of them.
pub fn programs(
    maps: &[MapDefinition],
    all: &[Linked],
    options: &Options,
) -> Result<Translation, ObjectError> {
    // Checked code begins in an entry of its own as well.
    let tail = options.unverified || all.iter().any(|linked| linked.helpers().contains(&Helper::TailCall));
    let mut files = BTreeMap::new();
    for line in all.iter().flat_map(|linked| linked.lines.values()) {
        let next = files.len() + 1;
        files.entry(line.file.clone()).or_insert(next);
    }
    let mut translation = Translation::default();
    let (mut body, mut functions) = (String::new(), Vec::new());
    for (number, linked) in all.iter().enumerate() {
        let own = plain(&linked.name);
        let known = all[..number].iter().any(|other| plain(&other.name) == own);
        let name = if known { format!("{own}_{number}") } else { own };
        let program = Program { linked, symbol: format!("nicety_xdp_program_{name}"), tail, files: &files };
        functions.extend(one(maps, &program, options, &mut body, &mut translation)?);
    }
    translation.maps.sort_unstable();
    translation.maps.dedup();
    translation.helpers.sort_by_key(|helper| *helper as u32);
    translation.helpers.dedup();
    let mut text = String::new();
    for (file, number) in &files {
        let _ = writeln!(text, "\t.file {number} \"{}\"", escaped(file));
    }
    // The linker makes calls shorter.
    text.push_str("\t.option relax\n\t.text\n");
    text.push_str(&body);
    if !files.is_empty() {
        let source = files.iter().find(|(_, number)| **number == 1).map_or("", |(name, _)| name);
        text.push_str(&debug::sections(&escaped(source), &functions, options.isa.wide));
    }
    if !translation.sites.is_empty() {
        let _ = writeln!(text, "\t.comm {ABORTED_NAME}, {}, 4", 4 * translation.sites.len());
    }
    if options.unverified {
        let _ = writeln!(text, "\t.comm {}, {}, 8", guard::RUNS_NAME, guard::RUN * options.cpus);
    }
    if text.contains(LOCK_NAME) {
        let _ = writeln!(text, "\t.comm {LOCK_NAME}, {}, 8", 8 * LOCKS);
    }
    translation.assembly = text;
    Ok(translation)
}

/// A text between quotes.
fn escaped(text: &str) -> String {
    let plain = crate::error::printable(text);
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes a program, and returns its functions.
fn one(
    maps: &[MapDefinition],
    program: &Program<'_>,
    options: &Options,
    body: &mut String,
    translation: &mut Translation,
) -> Result<Vec<debug::Unit>, ObjectError> {
    let linked = program.linked;
    let mut written = Vec::new();
    check(linked, maps)?;
    let symbol = &program.symbol;
    let _ = writeln!(body, "\t.section .text.{symbol},\"ax\",@progbits\n\t.p2align 2\n\t.globl {symbol}");
    if program.tail {
        let _ = writeln!(body, "\t.globl {}", names::function(program, 0));
    }
    let (begin, mut arrays) = (body.len(), Vec::new());
    let functions = ir::functions(linked)?;
    let alone = options.frames && !options.unverified && !program.tail && functions.len() == 1;
    for mut function in functions {
        let rules = Rules { wide: options.isa.wide, whole_result: program.tail };
        let changed = improve(&mut function, maps, options, (alone, rules));
        let at_blocks = facts::at_blocks(&function);
        let reached = reached_of(&function, &at_blocks);
        let notes = facts::rewrite(&mut function, &at_blocks, options.misaligned);
        inline::join_tests(&mut function);
        check_maps(linked, &function, &notes, &reached)?;
        if !options.isa.divides {
            reciprocal::check(linked, &function, &notes, &reached)?;
        }
        if options.unverified {
            guard::check_callbacks(linked, &function, &notes, &reached)?;
        }
        translation.direct |= changed.is_some();
        let (begin, behind) = demand::parts(&function, &notes, &reached, rules);
        let aborts = Aborts::of(std::mem::take(&mut translation.sites), translation.rest);
        let passes = (&notes[..], &begin[..], &behind[..], &reached[..]);
        let mut coder = Coder::new(options, maps, program, &function, passes, aborts, changed.as_deref());
        coder.write();
        (translation.sites, translation.rest) = (std::mem::take(&mut coder.aborts.sites), coder.aborts.rest);
        translation.lines += coder.text.count;
        body.push_str(&coder.text.assembly());
        let slot = linked.code.slots[function.first] as usize;
        written.push(debug::Unit {
            name: escaped(linked.function(slot)),
            label: names::function(program, function.first),
            refusals: std::mem::take(&mut coder.refusals),
        });
        entries(&function, program, options, body);
        for ins in &function.ins {
            let values = [ins.a, ins.b];
            translation.maps.extend(values.iter().filter_map(|value| match value {
                Value::Map(number) | Value::Data(number, _) | Value::Memory(number, _) => {
                    Some(*number as usize)
                }
                _ => None,
            }));
            let memory = [ins.a, ins.b].into_iter().filter_map(|value| match value {
                Value::Memory(map, _) => Some(map),
                _ => None,
            });
            arrays.extend(memory);
            if let Kind::Array { map, .. } = ins.kind {
                arrays.push(map);
                translation.maps.push(map as usize);
            }
            if let Kind::Hash { map } = ins.kind {
                translation.maps.push(map as usize);
                translation.helpers.push(Helper::MapLookup);
            }
            if let Kind::Helper(number) = ins.kind {
                translation.helpers.extend(Helper::of(number));
            }
        }
    }
    // The linker keeps the maps of lookups in place as well: their descriptors are for readers after a run.
    arrays.sort_unstable();
    arrays.dedup();
    let kept = arrays.iter().filter(|number| maps[**number as usize].contents.is_none());
    let kept = kept.map(|number| format!("\t.reloc ., R_RISCV_NONE, {}\n", names::map(maps, *number)));
    body.insert_str(begin, &kept.collect::<String>());
    translation.instructions += linked.code.steps.len();
    translation.programs.push((linked.name.clone(), symbol.clone()));
    translation.targets.push((linked.name.clone(), names::function(program, 0)));
    Ok(written)
}

/// Rewrites a function by a first round of facts. For a program that is a frame handler itself, it returns whether the frame may
/// have changed its bounds behind each step.
fn improve(
    function: &mut Function,
    maps: &[MapDefinition],
    options: &Options,
    (alone, rules): (bool, Rules),
) -> Option<Vec<bool>> {
    let first = facts::at_blocks(function);
    let notes = facts::rewrite(function, &first, options.misaligned);
    let changed = if alone { changed(function, &notes, &first, rules) } else { None };
    if changed.is_some() {
        bounds::push(function, &notes, options.headroom);
    }
    if !options.flow_processor {
        inline::arrays(function, &notes, maps, options);
        if options.hashes && !options.unverified {
            hashes::find(function, &notes, maps);
        }
        if options.misaligned && !options.unverified {
            copies::join(function, &notes, &first, rules);
            stores::join(function, &notes, rules.wide);
            sums::find(function, &notes);
        }
    }
    changed
}

/// Whether the frame may have changed its bounds behind each step; none if the program is no handler.
fn changed(
    function: &Function,
    notes: &[fact::Note],
    at_blocks: &[Option<Facts>],
    rules: Rules,
) -> Option<Vec<bool>> {
    let (begin, _) = demand::parts(function, notes, &reached_of(function, at_blocks), rules);
    bounds::changed(function, at_blocks, &begin)
}

/// Whether some way reaches each step.
fn reached_of(function: &Function, at_blocks: &[Option<Facts>]) -> Vec<bool> {
    let mut reached = vec![false; function.ins.len()];
    for ((first, last), facts) in function.blocks().into_iter().zip(at_blocks) {
        reached[first..=last].fill(facts.is_some());
    }
    reached
}

/// Entries for callers in C: of a callback, and of a program that others may replace.
fn entries(function: &Function, program: &Program<'_>, options: &Options, body: &mut String) {
    let mut entry = |name: &str, tail: bool| {
        let target = names::function(program, function.first);
        let (store, load, size) = if options.isa.wide { ("sd", "ld", 8) } else { ("sw", "lw", 4) };
        let frame = if options.unverified { 32 } else { 16 };
        let _ = writeln!(
            body,
            "\t.type {name}, @function\n{name}:\n\taddi sp, sp, -{frame}\n\t{store} ra, {size}(sp)"
        );
        if tail {
            let _ = writeln!(body, "\t{store} s11, 0(sp)\n\tli s11, {TAIL_CALLS}");
        }
        if options.unverified {
            let _ = writeln!(body, "\t{store} s10, {}(sp)", 2 * size);
            guard::load_run(options, body);
        }
        let _ = writeln!(body, "\tcall {target}\n\t{load} ra, {size}(sp)");
        if options.unverified {
            let _ = writeln!(body, "\t{load} s10, {}(sp)", 2 * size);
        }
        if tail {
            let _ = writeln!(body, "\t{load} s11, 0(sp)");
        }
        let _ = match (options.isa.wide, tail) {
            (true, true) => writeln!(body, "\tsext.w a0, a5"),
            (true, false) => writeln!(body, "\tmv a0, a5"),
            (false, _) => writeln!(body, "\tmv a0, t3\n\tmv a1, t4"),
        };
        let _ = writeln!(body, "\taddi sp, sp, {frame}\n\tret\n\t.size {name}, .-{name}");
    };
    if function.is_callback {
        entry(&names::callback(program, function.first), false);
    }
    if function.is_main && program.tail {
        entry(&program.symbol, true);
    }
}

/// The most tail calls of a run.
const TAIL_CALLS: u32 = 33;

fn refuse<T>(linked: &Linked, step: usize, problem: &str, advice: &str) -> Result<T, ObjectError> {
    Err(ObjectError::refused(linked.place(linked.code.slots[step] as usize), problem, advice))
}

fn check(linked: &Linked, maps: &[MapDefinition]) -> Result<(), ObjectError> {
    for (at, step) in linked.code.steps.iter().enumerate() {
        if matches!(step.op, Op::Atomic32(_) | Op::Atomic64(_)) && step.src == 10 {
            return refuse(linked, at, "an atomic operation with r10", "copy it to another register");
        }
        let slot = linked.code.slots[at] as usize;
        if step.op == Op::Constant && [CONSTANT_MAP, CONSTANT_VALUE].contains(&linked.slots[slot].src) {
            let Some(map) = maps.get(linked.slots[slot].imm as u32 as usize) else {
                return refuse(linked, at, "a map that the object lacks", "compile the object again");
            };
            let offset = linked.slots[slot + 1].imm as u32;
            if linked.slots[slot].src == CONSTANT_VALUE && (map.contents.is_none() || offset > map.value_size)
            {
                return refuse(linked, at, "an address outside its section", "compile the object again");
            }
        }
        if step.op == Op::Helper && Helper::of(step.imm as u32).is_none() {
            return refuse(
                linked,
                at,
                "a call of a helper that nicety does not support",
                "write a program without it",
            );
        }
    }
    Ok(())
}

/// Whether a map is an array with lookups by instructions.
fn array_of(maps: &[MapDefinition], number: u32) -> bool {
    maps.get(number as usize).is_some_and(|map| {
        let kinds = [MapKind::Array, MapKind::PerCpuArray];
        kinds.iter().any(|kind| *kind as u32 == map.kind) && map.key_size == 4 && map.inner.is_none()
    })
}

/// Refuses a tail call through an array that is found at run time.
fn check_maps(
    linked: &Linked,
    function: &Function,
    notes: &[fact::Note],
    reached: &[bool],
) -> Result<(), ObjectError> {
    for (at, ins) in function.ins.iter().enumerate().filter(|(at, _)| reached[*at]) {
        let known = matches!(notes[at].arguments[1], fact::Known::Is(Value::Map(_)));
        if ins.kind == Kind::Helper(Helper::TailCall as u32) && !known {
            let problem = "a tail call through an array that is known only at run time";
            return refuse(linked, function.first + at, problem, "name the array in the call");
        }
    }
    Ok(())
}
