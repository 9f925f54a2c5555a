//! Instructions in the place where a core would wait for a load.
//!
//! A core waits a cycle where the instruction behind a load uses its result. A later instruction that depends on none of those in
//! between takes that place. It keeps its line in the source.

use super::text::Row;

/// The most instructions that one passes on its way.
const REACH: usize = 8;

/// Moves instructions behind loads with results that the next instruction uses.
pub(super) fn fill_waits(rows: &mut [Row]) {
    let mut at = 0;
    while at < rows.len() {
        at += spread(rows, at).max(1);
    }
    for at in 0..rows.len().saturating_sub(2) {
        let Some(load) = Parsed::of(&rows[at]).filter(|first| first.access == Access::Load) else { continue };
        let waits = Parsed::of(&rows[at + 1]).is_some_and(|next| next.reads.contains(&load.writes));
        if let Some(found) = waits.then(|| later(rows, at, &load)).flatten() {
            rows[at + 1..=found].rotate_right(1);
        }
    }
}

/// The register that copies in a row take in turns. The code of a step needs it, and none has it between steps.
const SPARE: &str = "t0";

/// Gives every other copy of a row from a place on another register, so that loads can be in front of stores. Returns the row's length.
fn spread(rows: &mut [Row], first: usize) -> usize {
    let mut copies: Vec<(usize, String)> = Vec::new();
    for at in (first..rows.len().saturating_sub(1)).step_by(2) {
        let Some(register) = copied(&rows[at], &rows[at + 1]) else { break };
        if copies.first().is_some_and(|(_, own)| own != register) {
            break;
        }
        copies.push((at, register.to_owned()));
    }
    // The last copy's register may be read later.
    for (at, register) in copies.iter().rev().skip(1).step_by(2) {
        for row in &mut rows[*at..at + 2] {
            row.text = row.text.replacen(&format!(" {register}, "), &format!(" {SPARE}, "), 1);
        }
    }
    2 * copies.len()
}

/// The register of a load and of a store of the same behind it.
fn copied<'r>(load: &'r Row, store: &'r Row) -> Option<&'r str> {
    let load = Parsed::of(load).filter(|load| load.access == Access::Load)?;
    let store = Parsed::of(store).filter(|store| store.access == Access::Store)?;
    let register = load.writes;
    let is_base = |name: &str| [load.reads[0], store.reads[1]].contains(&name);
    let plain = store.reads[0] == register && !["zero", SPARE].contains(&register);
    (plain && !is_base(register) && !is_base(SPARE)).then_some(register)
}

/// The next instruction that can follow a load at `at` directly.
fn later(rows: &[Row], at: usize, load: &Parsed<'_>) -> Option<usize> {
    let mut passed = Vec::new();
    for (number, row) in rows.iter().enumerate().skip(at + 1).take(REACH) {
        let own = Parsed::of(row)?;
        let free = !own.reads.contains(&load.writes) && own.writes != load.writes;
        if number > at + 1 && free && passed.iter().all(|other| own.can_pass(other)) {
            return Some(number);
        }
        passed.push(own);
    }
    None
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    None,
    Load,
    Store,
}

/// An instruction that may change its place.
#[derive(Clone, Debug)]
struct Parsed<'r> {
    /// The register that it writes, or nothing.
    writes: &'r str,
    reads: Vec<&'r str>,
    access: Access,
    is_far: bool,
    /// The bytes of the stack that it accesses, if it does so by the stack's register.
    stack: Option<(i64, i64)>,
}

impl<'r> Parsed<'r> {
    /// Jumps, calls, atomic operations and whatever this does not know stay in their places, and none passes them.
    fn of(row: &'r Row) -> Option<Parsed<'r>> {
        if !row.is_instruction {
            return None;
        }
        let (name, operands) = row.text.split_once(' ')?;
        let all: Vec<&str> = operands.split(", ").collect();
        let parsed =
            |writes, reads, access, stack| Some(Parsed { writes, reads, access, is_far: row.is_far, stack });
        if let Some((bytes, access)) = memory(name) {
            let [value, place] = all[..] else { return None };
            let (distance, base) = place.strip_suffix(')')?.split_once('(')?;
            let begin = distance.parse().ok()?;
            let stack = (base == "sp").then_some((begin, begin + bytes));
            return match access {
                Access::Store => parsed("", vec![value, base], access, stack),
                _ => parsed(value, vec![base], access, stack),
            };
        }
        // The stack has its bytes between these.
        if !MOVABLE.contains(&name) || all[0] == "sp" {
            return None;
        }
        parsed(all[0], all[1..].to_vec(), Access::None, None)
    }

    /// Whether an instruction can be in front of one that it follows.
    fn can_pass(&self, other: &Parsed<'_>) -> bool {
        let depends =
            |one: &Parsed<'_>, on: &Parsed<'_>| !on.writes.is_empty() && one.reads.contains(&on.writes);
        let same = !self.writes.is_empty() && self.writes == other.writes;
        !same && !depends(self, other) && !depends(other, self) && !self.may_share(other)
    }

    /// Whether both may access the same bytes, and one of them writes.
    fn may_share(&self, other: &Parsed<'_>) -> bool {
        let both = self.access != Access::None && other.access != Access::None;
        if !both || (self.access == Access::Load && other.access == Access::Load) {
            return false;
        }
        match (self.stack, other.stack) {
            (Some(own), Some(its)) => own.0 < its.1 && its.0 < own.1,
            (Some(_), None) => !other.is_far,
            (None, Some(_)) => !self.is_far,
            (None, None) => true,
        }
    }
}

/// Bytes and kind of an access.
fn memory(name: &str) -> Option<(i64, Access)> {
    Some(match name {
        "lb" | "lbu" => (1, Access::Load),
        "lh" | "lhu" => (2, Access::Load),
        "lw" | "lwu" => (4, Access::Load),
        "ld" => (8, Access::Load),
        "sb" => (1, Access::Store),
        "sh" => (2, Access::Store),
        "sw" => (4, Access::Store),
        "sd" => (8, Access::Store),
        _ => return None,
    })
}

/// Instructions that write their first operand, from the others alone.
const MOVABLE: [&str; 30] = [
    "add", "addi", "addiw", "addw", "and", "andi", "li", "mul", "mv", "neg", "or", "ori", "sext.w", "sll",
    "slli", "slliw", "sltiu", "snez", "sra", "srai", "sraiw", "srl", "srli", "srliw", "sub", "subw", "xor",
    "xori", "zext.h", "zext.w",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduled(text: &str) -> String {
        let row = |line: &str| Row {
            text: line.trim_end_matches(" far").to_owned(),
            line: None,
            is_instruction: !line.ends_with(':'),
            is_far: line.ends_with(" far"),
        };
        let mut rows: Vec<Row> = text.split("; ").map(row).collect();
        fill_waits(&mut rows);
        rows.iter().map(|row| row.text.as_str()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn an_independent_instruction_fills_the_wait() {
        assert_eq!(
            scheduled("lbu a3, 14(a0) far; slliw a3, a3, 2; andi a3, a3, 60; li t1, 20"),
            "lbu a3, 14(a0); li t1, 20; slliw a3, a3, 2; andi a3, a3, 60"
        );
    }

    #[test]
    fn copies_to_the_stack_overlap_where_registers_differ() {
        assert_eq!(
            scheduled(
                "lw a3, 26(a0) far; sw a3, 4(sp); lw a0, 30(a0) far; sw a0, 8(sp); lhu a0, 0(a2) far; sh a0, 12(sp)"
            ),
            "lw a3, 26(a0); lw a0, 30(a0); sw a3, 4(sp); sw a0, 8(sp); lhu a0, 0(a2); sh a0, 12(sp)"
        );
    }

    #[test]
    fn copies_in_a_row_take_registers_in_turns() {
        assert_eq!(
            scheduled("lw a0, 26(s3) far; sw a0, 4(sp); lhu a0, 34(s3) far; sh a0, 8(sp); add a1, a0, a2"),
            "lw t0, 26(s3); lhu a0, 34(s3); sw t0, 4(sp); sh a0, 8(sp); add a1, a0, a2"
        );
        // The second address depends on the first load, and t0 has an address.
        for text in [
            "lw a0, 26(s3) far; sw a0, 4(sp); lhu a0, 34(a0) far; sh a0, 8(sp)",
            "lw a0, 26(t0) far; sw a0, 4(sp); lhu a0, 34(t0) far; sh a0, 8(sp)",
        ] {
            assert_eq!(scheduled(text), text.replace(" far", ""));
        }
    }

    #[test]
    fn order_of_accesses_to_the_same_bytes_stays() {
        // The pointer in a1 may be one to the stack.
        for text in [
            "lw a3, 26(a0); sw a3, 4(sp); lw a4, 0(a1)",
            "lw a3, 26(a0) far; sw a3, 4(sp); lw a4, 4(sp)",
            "lw a3, 26(a0) far; sw a3, 4(sp); sb a5, 7(sp)",
            "lw a3, 26(a0) far; sw a3, 0(a4) far; sw a5, 0(a2) far",
            "lw a3, 0(a0) far; addi a3, a3, 1; amoadd.w zero, t1, (t0); li t2, 3",
            "lw a3, 0(a0) far; addi a3, a3, 1; label:; li t2, 3",
            "lw a3, 0(a0) far; beqz a3, label; li t2, 3",
            "lw a3, 0(a0) far; addi a4, a3, 1; mv a3, a5",
            "lw a3, 0(a0) far; addi a4, a3, 1; mv t0, a4",
            "lw a3, 0(a0) far; add a4, a3, a5; li a5, 3",
        ] {
            assert_eq!(scheduled(text), text.replace(" far", ""));
        }
    }
}
