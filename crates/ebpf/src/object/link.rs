//! Links a program: its functions one behind another, with calls, maps and CO-RE relocations resolved.

use super::btf::{Btf, Kind};
use super::btf_ext::CoreRelocation;
use super::function::{Function, Reference};
use super::{Attach, Entry, Line, MapDefinition, Object};
use super::{core_relocation, dead};
use crate::decode::{Code, MOST_SLOTS, decode};
use crate::error::ObjectError;
use crate::helper::{self, Helper};
use crate::instruction::*;
use crate::op::Op;
use std::collections::BTreeMap;

/// A program that can run.
#[derive(Clone, Debug, Default)]
pub struct Linked {
    /// The name.
    pub name: String,
    /// The slots, with numbers of maps as constants.
    pub slots: Vec<Instruction>,
    /// The decoded slots.
    pub code: Code,
    /// The functions, by their first slots.
    pub functions: BTreeMap<usize, String>,
    /// Lines of the source, by the first slot of each.
    pub lines: BTreeMap<usize, Line>,
    /// Numbers of the maps that it uses, in their order.
    pub maps: Vec<usize>,
    /// Relocations of maps and data, of calls and callbacks, and of types.
    pub relocations: [usize; 3],
    /// The place where Linux attaches it. A program of a device map may read the interface that a packet leaves by.
    pub attach: Attach,
}

impl Linked {
    /// A program from slots alone, which name maps by their numbers.
    ///
    /// # Errors
    /// A slot is no instruction.
    pub fn of_slots(name: &str, slots: Vec<Instruction>) -> Result<Linked, crate::DecodeError> {
        let code = decode(&slots)?;
        let functions = BTreeMap::from([(0, name.to_owned())]);
        Ok(Linked { name: name.to_owned(), code, slots, functions, ..Linked::default() })
    }

    /// The line of a slot.
    pub fn line(&self, slot: usize) -> Option<&Line> {
        let (&first, _) = self.functions.range(..=slot).next_back()?;
        self.lines.range(first..=slot).next_back().map(|(_, line)| line)
    }

    /// The function of a slot.
    pub fn function(&self, slot: usize) -> &str {
        self.functions.range(..=slot).next_back().map_or(&self.name, |(_, name)| name)
    }

    /// The place of a slot: program, instruction, and line of the source.
    pub fn place(&self, slot: usize) -> String {
        let function = match self.function(slot) {
            same if same == self.name => String::new(),
            other => format!(", function {other}"),
        };
        match self.line(slot) {
            Some(line) => format!("program {}{function}, instruction {slot} ({line})", self.name),
            None => format!("program {}{function}, instruction {slot}", self.name),
        }
    }

    /// The helpers that it calls, in the order of their numbers.
    pub fn helpers(&self) -> Vec<Helper> {
        let calls = self.code.steps.iter().filter(|step| step.op == Op::Helper);
        let mut helpers: Vec<Helper> = calls.filter_map(|step| Helper::of(step.imm as u32)).collect();
        helpers.sort_by_key(|helper| *helper as u32);
        helpers.dedup();
        helpers
    }
}

impl Object {
    /// Links a program, without a check of its stacks.
    pub(crate) fn joined(&self, entry: &Entry) -> Result<Linked, ObjectError> {
        let mut linker = Linker {
            object: self,
            order: Vec::new(),
            starts: BTreeMap::new(),
            linked: Linked { name: entry.name.clone(), attach: entry.attach, ..Linked::default() },
            absent: BTreeMap::new(),
        };
        linker.collect(entry.function)?;
        linker.resolve()?;
        let (mut linked, absent) = (linker.linked, linker.absent);
        decoded(&mut linked)?;
        check_calls(&mut linked, &absent, &self.maps)?;
        linked.maps.sort_unstable();
        linked.maps.dedup();
        Ok(linked)
    }
}

fn decoded(linked: &mut Linked) -> Result<(), ObjectError> {
    linked.code = decode(&linked.slots).map_err(|error| {
        let (problem, advice) = error.problem.split_once("; ").unwrap_or((&error.problem, "change it"));
        ObjectError::refused(linked.place(error.slot), problem, advice)
    })?;
    Ok(())
}

/// Refuses calls of helpers that nicety lacks, and of absent functions, where a run may reach them.
fn check_calls(
    linked: &mut Linked,
    absent: &BTreeMap<usize, Problem>,
    maps: &[MapDefinition],
) -> Result<(), ObjectError> {
    let slot_of = |step: usize| linked.code.slots[step] as usize;
    let problem = |step: usize| {
        let helper = linked.code.steps[step].op == Op::Helper;
        let lacks = |&number: &u32| helper && Helper::of(number).is_none();
        let number = Some(linked.code.steps[step].imm as u32).filter(lacks);
        number.map(unknown_helper).or_else(|| absent.get(&slot_of(step)).cloned())
    };
    let calls: Vec<(usize, Problem)> =
        (0..linked.code.steps.len()).filter_map(|step| Some((step, problem(step)?))).collect();
    if calls.is_empty() {
        return Ok(());
    }
    let starts: Vec<usize> =
        linked.functions.keys().filter_map(|&slot| step_of(&linked.code, slot)).collect();
    let reached = dead::reached(&linked.code, &starts, maps);
    for (step, (problem, advice)) in calls {
        let slot = slot_of(step);
        if reached[step] {
            return Err(ObjectError::refused(linked.place(slot), problem, advice));
        }
        linked.slots[slot] = crate::asm::mov_imm(0, 0);
    }
    decoded(linked)
}

fn step_of(code: &Code, slot: usize) -> Option<usize> {
    code.slots.binary_search(&(slot as u32)).ok()
}

/// A problem and the advice.
type Problem = (String, &'static str);

fn unknown_helper(number: u32) -> Problem {
    match helper::name(number) {
        Some(name) => {
            (format!("helper {number} (bpf_{name}) is not supported by nicety"), "write a program without it")
        }
        None => (format!("helper {} is unknown to Linux", number as i32), "call a helper by its number"),
    }
}

/// The problem with a name that the object does not define, and the advice.
fn undefined(btf: &Btf, name: &str) -> Problem {
    if is_in(btf, ".ksyms", name) {
        let problem = format!("{name} is the kernel's own (__ksym), and a modelled machine has no kernel");
        return (problem, "call helpers or functions of the object");
    }
    if is_in(btf, ".kconfig", name) {
        let problem =
            format!("{name} is a value of the kernel's configuration, and a modelled machine has no kernel");
        return (problem, "make it a constant or a variable");
    }
    let problem = format!("{name} is not defined in the object");
    match name {
        // Compilers for freestanding targets leave calls of these.
        "memcpy" | "memmove" | "memset" => {
            (problem, "write the __builtin_ function of that name, with a constant size")
        }
        _ => (problem, "define it, or link its object with bpftool gen object"),
    }
}

/// Whether the types have a name in a section.
fn is_in(btf: &Btf, section: &str, name: &str) -> bool {
    let Some(Kind::Section(names)) = btf.section(section).and_then(|id| btf.kind(id)) else {
        return false;
    };
    names.iter().any(|placed| btf.types.get(placed.type_id as usize).is_some_and(|found| found.name == name))
}

struct Linker<'o> {
    object: &'o Object,
    /// The functions in their order.
    order: Vec<usize>,
    /// The first slot of each function.
    starts: BTreeMap<usize, usize>,
    linked: Linked,
    /// Calls of functions that the kernel may lack, by slot.
    absent: BTreeMap<usize, Problem>,
}

impl Linker<'_> {
    /// Puts a function and all that it calls one behind another.
    fn collect(&mut self, first: usize) -> Result<(), ObjectError> {
        let mut waiting = vec![first];
        while let Some(number) = waiting.pop() {
            if self.starts.contains_key(&number) {
                continue;
            }
            let object = self.object;
            let function = &object.functions[number];
            let start = self.linked.slots.len();
            self.starts.insert(number, start);
            self.order.push(number);
            self.linked.functions.insert(start, function.name.clone());
            self.linked.slots.extend(&function.slots);
            if self.linked.slots.len() > MOST_SLOTS {
                let problem = format!("it has more than {MOST_SLOTS} instructions");
                return Err(ObjectError::refused(
                    format!("program {}", self.linked.name),
                    problem,
                    "split it",
                ));
            }
            let lines = function.lines.iter().map(|(slot, line)| (start + slot, line.clone()));
            self.linked.lines.extend(lines);
            // In reverse, so that functions stand in the order of their first calls.
            for slot in (0..function.slots.len()).rev() {
                waiting.extend(self.callee(function, slot)?.map(|(callee, _)| callee));
            }
        }
        Ok(())
    }

    /// The function that a slot refers to, by a call or as a callback.
    fn callee(&self, function: &Function, slot: usize) -> Result<Option<(usize, usize)>, ObjectError> {
        let instruction = function.slots[slot];
        let (section, target) = match function.references.get(&slot) {
            Some(&Reference::Code(section, target)) => (section, target),
            Some(_) => return Ok(None),
            None if instruction.is_local_call() => {
                (function.section, (function.first + slot) as i64 + 1 + i64::from(instruction.imm))
            }
            None => return Ok(None),
        };
        let found =
            self.object.functions.iter().position(|f| f.section == section && f.first as i64 == target);
        match found {
            Some(callee) => Ok(Some((callee, slot))),
            None => {
                let place = format!("function {}, instruction {slot}", function.name);
                let problem = "it calls code without a function symbol";
                Err(ObjectError::refused(
                    place,
                    problem,
                    "keep local symbols: strip only debug sections (-g)",
                ))
            }
        }
    }

    fn resolve(&mut self) -> Result<(), ObjectError> {
        for number in self.order.clone() {
            let object = self.object;
            let function = &object.functions[number];
            let start = self.starts[&number];
            for slot in 0..function.slots.len() {
                if let Some((callee, _)) = self.callee(function, slot)? {
                    self.call(start + slot, self.starts[&callee]);
                }
            }
            for (&slot, reference) in &function.references {
                self.refer(start + slot, reference)?;
            }
            for (&slot, relocation) in &function.core {
                self.core(start + slot, relocation)?;
            }
        }
        Ok(())
    }

    fn call(&mut self, slot: usize, target: usize) {
        self.linked.relocations[1] += 1;
        let instruction = &mut self.linked.slots[slot];
        if instruction.is_wide() {
            instruction.src = CONSTANT_FUNCTION;
        }
        instruction.imm = (target as i64 - slot as i64 - 1) as i32;
    }

    fn refer(&mut self, slot: usize, reference: &Reference) -> Result<(), ObjectError> {
        let refuse = |linked: &Linked, problem: String, advice: &str| {
            Err(ObjectError::refused(linked.place(slot), problem, advice))
        };
        let (kind, map, offset) = match reference {
            Reference::Map(map) => (CONSTANT_MAP, *map, 0),
            Reference::Value(map, offset) => (CONSTANT_VALUE, *map, *offset),
            Reference::Code(..) => return Ok(()),
            Reference::Undefined(name, weak) => {
                let (problem, advice) = undefined(&self.object.btf, name);
                if !weak || !is_in(&self.object.btf, ".ksyms", name) {
                    return refuse(&self.linked, problem, advice);
                }
                self.leave_out(slot, (problem, advice));
                return Ok(());
            }
            Reference::Other(what) => {
                return refuse(&self.linked, format!("it refers to {what}"), "use maps, data or functions");
            }
        };
        let name = &self.object.maps[map].name;
        let Some([first, second]) = self.linked.slots.get_mut(slot..slot + 2) else {
            return refuse(
                &self.linked,
                format!("the constant of {name} is cut off"),
                "compile the object again",
            );
        };
        (first.src, first.imm, second.imm) = (kind, map as i32, offset as i32);
        self.linked.maps.push(map);
        self.linked.relocations[0] += 1;
        Ok(())
    }

    /// A weak function of the kernel: its address is 0, and calls of it are checked later.
    fn leave_out(&mut self, slot: usize, problem: Problem) {
        match self.linked.slots.get_mut(slot..slot + 2) {
            Some([first, second]) if first.is_wide() => (first.src, first.imm, second.imm) = (CONSTANT, 0, 0),
            _ => {
                self.absent.insert(slot, problem);
            }
        }
    }

    fn core(&mut self, slot: usize, relocation: &CoreRelocation) -> Result<(), ObjectError> {
        let refused = |problem: core_relocation::Refusal| {
            ObjectError::refused(self.linked.place(slot), problem.problem, problem.advice)
        };
        let value = core_relocation::value(&self.object.btf, relocation).map_err(refused)?;
        let next = self.linked.slots.get(slot + 1).copied();
        let patched = core_relocation::patched(self.linked.slots[slot], next, value).map_err(refused)?;
        self.linked.slots[slot] = patched.0;
        self.linked.relocations[2] += 1;
        if let (Some(second), Some(place)) = (patched.1, self.linked.slots.get_mut(slot + 1)) {
            *place = second;
        }
        Ok(())
    }
}
