//! Loops that wait for a word of memory, by their instructions.

use nicety_hpu::{Image, Instruction, Kind};

/// Instructions between a load and the branch of its loop.
const LOOP: usize = 24;

/// Whether a load polls: its value decides on a branch back to it, or on the exit of a loop around it. Nothing is stored
/// in the loop before.
pub(crate) fn polls(image: &Image, pc: u32) -> bool {
    let Some(load) = image.instruction(pc) else { return false };
    decides(image, pc, &load, pc.wrapping_add(u32::from(load.len)))
}

/// Whether an atomic operation waits for its word: the value that it loads decides on a loop around it. `first` is an LR,
/// and `last` is its SC. Otherwise both are the operation.
pub(crate) fn waits(image: &Image, first: u32, last: u32) -> bool {
    let (Some(load), Some(store)) = (image.instruction(first), image.instruction(last)) else { return false };
    let mut next = last.wrapping_add(u32::from(store.len));
    if first != last
        && let Some(retry) = image.instruction(next)
        && matches!(retry.kind, Kind::Bne | Kind::Beq)
        && [retry.rs1, retry.rs2].contains(&store.rd)
    {
        // An SC that fails goes back to its LR, whatever the value.
        next = next.wrapping_add(u32::from(retry.len));
    }
    decides(image, first, &load, next)
}

/// Whether the value of a load at `pc` decides on a loop around it, by the instructions from `next` on.
fn decides(image: &Image, pc: u32, load: &Instruction, mut next: u32) -> bool {
    let mut from_load = 1u64 << load.rd & !1;
    let mut decides = false;
    for _ in 0..LOOP {
        let Some(instruction) = image.instruction(next) else { return false };
        let uses =
            from_load >> (instruction.rs1 & 31) & 1 != 0 || from_load >> (instruction.rs2 & 31) & 1 != 0;
        match instruction.kind {
            Kind::Beq | Kind::Bne | Kind::Blt | Kind::Bge | Kind::Bltu | Kind::Bgeu => {
                let back = instruction.imm <= pc;
                if uses && back {
                    return true;
                }
                decides |= uses;
            }
            Kind::Jal if instruction.rd == 0 => return decides && instruction.imm <= pc,
            // A compiler makes the first test of a loop apart, in front of it.
            kind if (kind, instruction.rs1, instruction.imm) == (load.kind, load.rs1, load.imm) => {
                return decides && polls(image, next);
            }
            Kind::Jal | Kind::Jalr | Kind::Sb | Kind::Sh | Kind::Sw => return false,
            kind if kind.is_atomic() => return false,
            _ if uses => from_load |= 1 << (instruction.rd & 31) & !1,
            _ => from_load &= !(1 << (instruction.rd & 31)),
        }
        next = next.wrapping_add(u32::from(instruction.len));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{polls, waits};
    use nicety_hpu::asm::*;
    use nicety_hpu::{Core, Image};

    #[test]
    fn a_load_polls_where_its_value_decides_on_its_loop() {
        let of = |words: &[u32]| polls(&Image::from_words(0x1d00_0000, words, &Core::default()), 0x1d00_0000);
        assert!(of(&[lw(A1, 0, A0), beq(A1, ZERO, -4), ret()]));
        assert!(of(&[lw(A1, 0, A0), andi(A1, A1, 1), bne(A1, ZERO, -8), ret()]));
        assert!(!of(&[lw(A1, 0, A0), addi(A1, ZERO, 3), bne(A1, ZERO, -8), ret()]));
        assert!(!of(&[lw(A1, 0, A0), sw(A1, 4, A0), beq(A1, ZERO, -8), ret()]));
        assert!(of(&[lw(A1, 0, A0), bne(A1, ZERO, 12), lw(A1, 0, A0), beq(A1, ZERO, -4), ret()]));
        assert!(!of(&[lw(A1, 0, A0), beq(A1, ZERO, 4), ret()]));
    }

    #[test]
    fn an_operation_waits_where_its_value_decides_on_its_loop() {
        let of = |words: &[u32], first: u32, last: u32| {
            let image = Image::from_words(0x1d00_0000, words, &Core::default());
            waits(&image, 0x1d00_0000 + 4 * first, 0x1d00_0000 + 4 * last)
        };
        assert!(of(&[amoswap_w(A1, A2, A0), bne(A1, ZERO, -4), ret()], 0, 0));
        assert!(!of(&[amoswap_w(A1, A2, A0), bne(A1, ZERO, 8), ret()], 0, 0));
        // It loads until the word is free, and tries again.
        let [free, tried] = [lw(A1, 0, A0), amoswap_w(A1, A2, A0)];
        assert!(of(&[tried, beq(A1, ZERO, 16), free, bne(A1, ZERO, -4), jal(ZERO, -16), ret()], 0, 0));
        let exchange = [lr_w(A1, A0), bne(A1, ZERO, 12), sc_w(A2, A3, A0), bne(A2, ZERO, -12)];
        assert!(of(&[&exchange[..], &[bne(A1, ZERO, -16), ret()]].concat(), 0, 2));
        assert!(!of(&[&exchange[..], &[bne(A1, ZERO, 8), ret()]].concat(), 0, 2));
    }
}
