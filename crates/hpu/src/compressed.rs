//! Compressed instructions, expanded to their 32-bit equivalents (RISC-V unprivileged specification, chapter "C").

use crate::asm::*;

/// The three-bit register fields name x8 to x15.
const fn short(half: u32, shift: u32) -> u32 {
    8 + (half >> shift & 7)
}

/// Gathers bits of `half`. Each piece has the lowest source bit, the number of bits and the lowest destination bit.
fn gather(half: u32, pieces: &[(u32, u32, u32)]) -> u32 {
    pieces.iter().fold(0, |value, &(from, count, to)| value | (half >> from & ((1 << count) - 1)) << to)
}

fn signed(value: u32, bits: u32) -> i32 {
    (value << (32 - bits)) as i32 >> (32 - bits)
}

/// Returns the 32-bit equivalent in RV32, or in RV64 if `wide`. `None` for reserved encodings and those of unsupported
/// extensions.
pub(crate) fn expand(half: u16, wide: bool) -> Option<u32> {
    let h = u32::from(half);
    let rd = h >> 7 & 31;
    let rs2 = h >> 2 & 31;
    let imm6 = signed(gather(h, &[(2, 5, 0), (12, 1, 5)]), 6);
    let word = match (h & 3, h >> 13) {
        (0, 0) => {
            let imm = gather(h, &[(6, 1, 2), (5, 1, 3), (11, 2, 4), (7, 4, 6)]);
            if imm == 0 {
                return None;
            }
            addi(short(h, 2), SP, imm as i32)
        }
        (0, 2) => lw(short(h, 2), word_offset(h), short(h, 7)),
        (0, 3) if wide => ld(short(h, 2), double_offset(h), short(h, 7)),
        (0, 3) => flw(short(h, 2), word_offset(h), short(h, 7)),
        (0, 6) => sw(short(h, 2), word_offset(h), short(h, 7)),
        (0, 7) if wide => sd(short(h, 2), double_offset(h), short(h, 7)),
        (0, 7) => fsw(short(h, 2), word_offset(h), short(h, 7)),
        (1, 0) => addi(rd, rd, imm6),
        (1, 1) if wide && rd == 0 => return None,
        (1, 1) if wide => addiw(rd, rd, imm6),
        (1, 1) => jal(RA, jump_offset(h)),
        (1, 2) => addi(rd, ZERO, imm6),
        (1, 3) if rd == SP => {
            let imm = signed(gather(h, &[(6, 1, 4), (2, 1, 5), (5, 1, 6), (3, 2, 7), (12, 1, 9)]), 10);
            if imm == 0 {
                return None;
            }
            addi(SP, SP, imm)
        }
        (1, 3) => {
            if imm6 == 0 {
                return None;
            }
            lui(rd, imm6 as u32 & 0xf_ffff)
        }
        (1, 4) => arithmetic(h, imm6, wide)?,
        (1, 5) => j(jump_offset(h)),
        (1, 6) => beq(short(h, 7), ZERO, branch_offset(h)),
        (1, 7) => bne(short(h, 7), ZERO, branch_offset(h)),
        // A shift by more than 31 is reserved in RV32.
        (2, 0) if wide || imm6 >= 0 => slli(rd, rd, imm6 as u32 & 63),
        (2, 2) if rd != 0 => lw(rd, gather(h, &[(4, 3, 2), (12, 1, 5), (2, 2, 6)]) as i32, SP),
        (2, 3) if wide && rd == 0 => return None,
        (2, 3) if wide => ld(rd, gather(h, &[(5, 2, 3), (12, 1, 5), (2, 3, 6)]) as i32, SP),
        (2, 3) => flw(rd, gather(h, &[(4, 3, 2), (12, 1, 5), (2, 2, 6)]) as i32, SP),
        (2, 4) => match (h >> 12 & 1, rd, rs2) {
            (0, 0, 0) => return None,
            (0, _, 0) => jalr(ZERO, rd, 0),
            (0, _, _) => add(rd, ZERO, rs2),
            (_, 0, 0) => ebreak(),
            (_, _, 0) => jalr(RA, rd, 0),
            (_, _, _) => add(rd, rd, rs2),
        },
        (2, 6) => sw(rs2, gather(h, &[(9, 4, 2), (7, 2, 6)]) as i32, SP),
        (2, 7) if wide => sd(rs2, gather(h, &[(10, 3, 3), (7, 3, 6)]) as i32, SP),
        (2, 7) => fsw(rs2, gather(h, &[(9, 4, 2), (7, 2, 6)]) as i32, SP),
        _ => return None,
    };
    Some(word)
}

fn arithmetic(h: u32, imm6: i32, wide: bool) -> Option<u32> {
    let (rd, rs2) = (short(h, 7), short(h, 2));
    let amount = imm6 as u32 & 63;
    let word = match (h >> 10 & 3, h >> 12 & 1, h >> 5 & 3) {
        (0, high, _) if wide || high == 0 => srli(rd, rd, amount),
        (1, high, _) if wide || high == 0 => srai(rd, rd, amount),
        (2, _, _) => andi(rd, rd, imm6),
        (3, 0, 0) => sub(rd, rd, rs2),
        (3, 0, 1) => xor(rd, rd, rs2),
        (3, 0, 2) => or(rd, rd, rs2),
        (3, 0, 3) => and(rd, rd, rs2),
        (3, 1, 0) if wide => subw(rd, rd, rs2),
        (3, 1, 1) if wide => addw(rd, rd, rs2),
        _ => return None,
    };
    Some(word)
}

fn word_offset(h: u32) -> i32 {
    gather(h, &[(6, 1, 2), (10, 3, 3), (5, 1, 6)]) as i32
}

fn double_offset(h: u32) -> i32 {
    gather(h, &[(10, 3, 3), (5, 2, 6)]) as i32
}

fn jump_offset(h: u32) -> i32 {
    let pieces = [(3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10), (12, 1, 11)];
    signed(gather(h, &pieces), 12)
}

fn branch_offset(h: u32) -> i32 {
    signed(gather(h, &[(3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8)]), 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Halfwords from LLVM's assembler, and their equivalents.
    #[test]
    fn every_form_expands_to_its_equivalent() {
        for (half, word) in [
            (0x0800, addi(S0, SP, 16)),   // c.addi4spn s0, sp, 16
            (0x1fe8, addi(A0, SP, 1020)), // c.addi4spn a0, sp, 1020
            (0x41d0, lw(A2, 4, A1)),      // c.lw a2, 4(a1)
            (0x5dfc, lw(A5, 124, A1)),    // c.lw a5, 124(a1)
            (0xc1d0, sw(A2, 4, A1)),      // c.sw a2, 4(a1)
            (0x0001, nop()),              // c.nop
            (0x157d, addi(A0, A0, -1)),   // c.addi a0, -1
            (0x3ffd, jal(RA, -2)),        // c.jal -2
            (0x557d, addi(A0, ZERO, -1)), // c.li a0, -1
            (0x1141, addi(SP, SP, -16)),  // c.addi16sp sp, -16
            (0x6105, addi(SP, SP, 32)),   // c.addi16sp sp, 32
            (0x757d, lui(A0, 0xf_ffff)),  // c.lui a0, 0xfffff
            (0x6505, lui(A0, 1)),         // c.lui a0, 1
            (0x817d, srli(A0, A0, 31)),   // c.srli a0, 31
            (0x857d, srai(A0, A0, 31)),   // c.srai a0, 31
            (0x997d, andi(A0, A0, -1)),   // c.andi a0, -1
            (0x8d0d, sub(A0, A0, A1)),    // c.sub a0, a1
            (0x8d2d, xor(A0, A0, A1)),    // c.xor a0, a1
            (0x8d4d, or(A0, A0, A1)),     // c.or a0, a1
            (0x8d6d, and(A0, A0, A1)),    // c.and a0, a1
            (0xbffd, j(-2)),              // c.j -2
            (0xa009, j(2)),               // c.j 2
            (0xdd7d, beq(A0, ZERO, -2)),  // c.beqz a0, -2
            (0xe101, bne(A0, ZERO, 0)),   // c.bnez a0, 0
            (0x057e, slli(A0, A0, 31)),   // c.slli a0, 31
            (0x4532, lw(A0, 12, SP)),     // c.lwsp a0, 12(sp)
            (0x50fe, lw(RA, 252, SP)),    // c.lwsp ra, 252(sp)
            (0x8082, ret()),              // c.jr ra
            (0x852e, add(A0, ZERO, A1)),  // c.mv a0, a1
            (0x9002, ebreak()),           // c.ebreak
            (0x9502, jalr(RA, A0, 0)),    // c.jalr a0
            (0x952e, add(A0, A0, A1)),    // c.add a0, a1
            (0xc606, sw(RA, 12, SP)),     // c.swsp ra, 12(sp)
            (0xdf86, sw(RA, 252, SP)),    // c.swsp ra, 252(sp)
            (0x61d0, flw(FA2, 4, A1)),    // c.flw fa2, 4(a1)
            (0xfdfc, fsw(FA5, 124, A1)),  // c.fsw fa5, 124(a1)
            (0x6532, flw(FA0, 12, SP)),   // c.flwsp fa0, 12(sp)
            (0x7002, flw(FT0, 32, SP)),   // c.flwsp ft0, 32(sp)
            (0xe606, fsw(FT1, 12, SP)),   // c.fswsp ft1, 12(sp)
        ] {
            assert_eq!(
                expand(half, false).map(|w| format!("{w:#010x}")),
                Some(format!("{word:#010x}")),
                "{half:#06x}"
            );
        }
    }

    /// Halfwords from LLVM's assembler, and their equivalents.
    #[test]
    fn forms_of_rv64_expand_to_their_equivalents() {
        for (half, word) in [
            (0x6188, ld(A0, 0, A1)),     // c.ld a0, 0(a1)
            (0x7de8, ld(A0, 248, A1)),   // c.ld a0, 248(a1)
            (0xe588, sd(A0, 8, A1)),     // c.sd a0, 8(a1)
            (0x357d, addiw(A0, A0, -1)), // c.addiw a0, -1
            (0x2501, addiw(A0, A0, 0)),  // c.addiw a0, 0
            (0x9d0d, subw(A0, A0, A1)),  // c.subw a0, a1
            (0x9d2d, addw(A0, A0, A1)),  // c.addw a0, a1
            (0x60a2, ld(RA, 8, SP)),     // c.ldsp ra, 8(sp)
            (0x70fe, ld(RA, 504, SP)),   // c.ldsp ra, 504(sp)
            (0xe406, sd(RA, 8, SP)),     // c.sdsp ra, 8(sp)
            (0xff86, sd(RA, 504, SP)),   // c.sdsp ra, 504(sp)
            (0x157e, slli(A0, A0, 63)),  // c.slli a0, 63
            (0x917d, srli(A0, A0, 63)),  // c.srli a0, 63
            (0x957d, srai(A0, A0, 63)),  // c.srai a0, 63
            (0x4532, lw(A0, 12, SP)),    // c.lwsp a0, 12(sp)
        ] {
            let expanded = expand(half, true).map(|w| format!("{w:#010x}"));
            assert_eq!(expanded, Some(format!("{word:#010x}")), "{half:#06x}");
        }
        // c.addiw and c.ldsp to x0, c.fld.
        for half in [0x2001, 0x6002, 0x2000] {
            assert_eq!(expand(half, true), None, "{half:#06x}");
        }
    }

    #[test]
    fn reserved_forms_are_refused() {
        for half in [
            0x0004,                    // c.addi4spn with a zero immediate
            0x2000,                    // c.fld
            0xa000,                    // c.fsd
            0x6101,                    // c.addi16sp with a zero immediate
            0x6501,                    // c.lui with a zero immediate
            0x917d,                    // c.srli by more than 31
            0x9d0d,                    // c.subw
            0x157e & !0x1000 | 0x1000, // c.slli by more than 31
            0x4002,                    // c.lwsp to x0
            0x8002,                    // c.jr x0
        ] {
            assert_eq!(expand(half, false), None, "{half:#06x}");
        }
    }

    #[test]
    fn every_halfword_expands_or_is_refused() {
        for wide in [false, true] {
            let accepted =
                (0..=u16::MAX).filter(|half| half & 3 != 3 && expand(*half, wide).is_some()).count();
            assert!(accepted > 20_000, "{accepted}");
        }
    }
}
