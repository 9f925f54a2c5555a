//! Steps with one number for each operation and its variant, so that a step is one jump of a table.

use crate::op::{Op, Step};
use std::collections::BTreeSet;

/// A step for the interpreter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fast {
    /// The operation with its variant.
    pub code: u8,
    pub dst: u8,
    /// The source register; of a call, whether the function uses its stack.
    pub src: u8,
    pub to: i32,
    pub imm: i64,
}

const ALU64_IMM: u8 = 0;
const ALU64_REG: u8 = 14;
const ALU32_IMM: u8 = 28;
const ALU32_REG: u8 = 42;
const JUMP64_IMM: u8 = 56;
const JUMP64_REG: u8 = 67;
const JUMP32_IMM: u8 = 78;
const JUMP32_REG: u8 = 89;
const LOAD: u8 = 100;
const STORE: u8 = 104;
const STORE_IMM: u8 = 108;
pub(crate) const CONSTANT: u8 = 112;
pub(crate) const JUMP: u8 = 113;
pub(crate) const HELPER: u8 = 114;
pub(crate) const CALL: u8 = 115;
pub(crate) const EXIT: u8 = 116;
pub(crate) const OTHER: u8 = 117;

/// The steps of a program.
pub(crate) fn fast(steps: &[Step]) -> Vec<Fast> {
    let starts: BTreeSet<usize> =
        steps.iter().filter(|step| step.op == Op::Call).map(|step| step.to as usize).collect();
    let uses = |start: usize| {
        let end = starts.range(start + 1..).next().copied().unwrap_or(steps.len());
        steps[start..end].iter().any(|step| step.dst == 10 || step.src == 10)
    };
    let stacks: BTreeSet<usize> = starts.iter().copied().filter(|&start| uses(start)).collect();
    let one = |step: &Step| Fast {
        code: code(step.op),
        dst: step.dst,
        src: if step.op == Op::Call { u8::from(stacks.contains(&(step.to as usize))) } else { step.src },
        to: step.to,
        imm: step.imm,
    };
    steps.iter().map(one).collect()
}

fn code(op: Op) -> u8 {
    match op {
        Op::Alu64Imm(alu) => ALU64_IMM + alu as u8,
        Op::Alu64Reg(alu) => ALU64_REG + alu as u8,
        Op::Alu32Imm(alu) => ALU32_IMM + alu as u8,
        Op::Alu32Reg(alu) => ALU32_REG + alu as u8,
        Op::Jump64Imm(condition) => JUMP64_IMM + condition as u8,
        Op::Jump64Reg(condition) => JUMP64_REG + condition as u8,
        Op::Jump32Imm(condition) => JUMP32_IMM + condition as u8,
        Op::Jump32Reg(condition) => JUMP32_REG + condition as u8,
        Op::Load(width) => LOAD + width as u8,
        Op::Store(width) => STORE + width as u8,
        Op::StoreImm(width) => STORE_IMM + width as u8,
        Op::Constant => CONSTANT,
        Op::Jump => JUMP,
        Op::Helper => HELPER,
        Op::Call => CALL,
        Op::Exit => EXIT,
        _ => OTHER,
    }
}

/// A `match` of a step's code on registers. Macros carry out jumps and accesses, and other codes have arms of their own.
macro_rules! dispatch {
    ($step:ident, $r:ident[$dst:ident, $src:ident], ($go:ident, $load:ident, $store:ident), $($rest:tt)*) => {
        match $step.code {
            0 => $r[$dst] = Alu::Add.of64($r[$dst], $step.imm as u64),
            1 => $r[$dst] = Alu::Sub.of64($r[$dst], $step.imm as u64),
            2 => $r[$dst] = Alu::Mul.of64($r[$dst], $step.imm as u64),
            3 => $r[$dst] = Alu::Div.of64($r[$dst], $step.imm as u64),
            4 => $r[$dst] = Alu::SignedDiv.of64($r[$dst], $step.imm as u64),
            5 => $r[$dst] = Alu::Mod.of64($r[$dst], $step.imm as u64),
            6 => $r[$dst] = Alu::SignedMod.of64($r[$dst], $step.imm as u64),
            7 => $r[$dst] = Alu::Or.of64($r[$dst], $step.imm as u64),
            8 => $r[$dst] = Alu::And.of64($r[$dst], $step.imm as u64),
            9 => $r[$dst] = Alu::Xor.of64($r[$dst], $step.imm as u64),
            10 => $r[$dst] = Alu::Lsh.of64($r[$dst], $step.imm as u64),
            11 => $r[$dst] = Alu::Rsh.of64($r[$dst], $step.imm as u64),
            12 => $r[$dst] = Alu::Arsh.of64($r[$dst], $step.imm as u64),
            13 => $r[$dst] = Alu::Mov.of64($r[$dst], $step.imm as u64),
            14 => $r[$dst] = Alu::Add.of64($r[$dst], $r[$src]),
            15 => $r[$dst] = Alu::Sub.of64($r[$dst], $r[$src]),
            16 => $r[$dst] = Alu::Mul.of64($r[$dst], $r[$src]),
            17 => $r[$dst] = Alu::Div.of64($r[$dst], $r[$src]),
            18 => $r[$dst] = Alu::SignedDiv.of64($r[$dst], $r[$src]),
            19 => $r[$dst] = Alu::Mod.of64($r[$dst], $r[$src]),
            20 => $r[$dst] = Alu::SignedMod.of64($r[$dst], $r[$src]),
            21 => $r[$dst] = Alu::Or.of64($r[$dst], $r[$src]),
            22 => $r[$dst] = Alu::And.of64($r[$dst], $r[$src]),
            23 => $r[$dst] = Alu::Xor.of64($r[$dst], $r[$src]),
            24 => $r[$dst] = Alu::Lsh.of64($r[$dst], $r[$src]),
            25 => $r[$dst] = Alu::Rsh.of64($r[$dst], $r[$src]),
            26 => $r[$dst] = Alu::Arsh.of64($r[$dst], $r[$src]),
            27 => $r[$dst] = Alu::Mov.of64($r[$dst], $r[$src]),
            28 => $r[$dst] = u64::from(Alu::Add.of32($r[$dst] as u32, $step.imm as u32)),
            29 => $r[$dst] = u64::from(Alu::Sub.of32($r[$dst] as u32, $step.imm as u32)),
            30 => $r[$dst] = u64::from(Alu::Mul.of32($r[$dst] as u32, $step.imm as u32)),
            31 => $r[$dst] = u64::from(Alu::Div.of32($r[$dst] as u32, $step.imm as u32)),
            32 => $r[$dst] = u64::from(Alu::SignedDiv.of32($r[$dst] as u32, $step.imm as u32)),
            33 => $r[$dst] = u64::from(Alu::Mod.of32($r[$dst] as u32, $step.imm as u32)),
            34 => $r[$dst] = u64::from(Alu::SignedMod.of32($r[$dst] as u32, $step.imm as u32)),
            35 => $r[$dst] = u64::from(Alu::Or.of32($r[$dst] as u32, $step.imm as u32)),
            36 => $r[$dst] = u64::from(Alu::And.of32($r[$dst] as u32, $step.imm as u32)),
            37 => $r[$dst] = u64::from(Alu::Xor.of32($r[$dst] as u32, $step.imm as u32)),
            38 => $r[$dst] = u64::from(Alu::Lsh.of32($r[$dst] as u32, $step.imm as u32)),
            39 => $r[$dst] = u64::from(Alu::Rsh.of32($r[$dst] as u32, $step.imm as u32)),
            40 => $r[$dst] = u64::from(Alu::Arsh.of32($r[$dst] as u32, $step.imm as u32)),
            41 => $r[$dst] = u64::from(Alu::Mov.of32($r[$dst] as u32, $step.imm as u32)),
            42 => $r[$dst] = u64::from(Alu::Add.of32($r[$dst] as u32, $r[$src] as u32)),
            43 => $r[$dst] = u64::from(Alu::Sub.of32($r[$dst] as u32, $r[$src] as u32)),
            44 => $r[$dst] = u64::from(Alu::Mul.of32($r[$dst] as u32, $r[$src] as u32)),
            45 => $r[$dst] = u64::from(Alu::Div.of32($r[$dst] as u32, $r[$src] as u32)),
            46 => $r[$dst] = u64::from(Alu::SignedDiv.of32($r[$dst] as u32, $r[$src] as u32)),
            47 => $r[$dst] = u64::from(Alu::Mod.of32($r[$dst] as u32, $r[$src] as u32)),
            48 => $r[$dst] = u64::from(Alu::SignedMod.of32($r[$dst] as u32, $r[$src] as u32)),
            49 => $r[$dst] = u64::from(Alu::Or.of32($r[$dst] as u32, $r[$src] as u32)),
            50 => $r[$dst] = u64::from(Alu::And.of32($r[$dst] as u32, $r[$src] as u32)),
            51 => $r[$dst] = u64::from(Alu::Xor.of32($r[$dst] as u32, $r[$src] as u32)),
            52 => $r[$dst] = u64::from(Alu::Lsh.of32($r[$dst] as u32, $r[$src] as u32)),
            53 => $r[$dst] = u64::from(Alu::Rsh.of32($r[$dst] as u32, $r[$src] as u32)),
            54 => $r[$dst] = u64::from(Alu::Arsh.of32($r[$dst] as u32, $r[$src] as u32)),
            55 => $r[$dst] = u64::from(Alu::Mov.of32($r[$dst] as u32, $r[$src] as u32)),
            56 => if Condition::Equal.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            57 => if Condition::Unequal.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            58 => if Condition::Test.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            59 => if Condition::Above.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            60 => if Condition::AboveOrEqual.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            61 => if Condition::Below.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            62 => if Condition::BelowOrEqual.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            63 => if Condition::Greater.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            64 => if Condition::GreaterOrEqual.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            65 => if Condition::Less.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            66 => if Condition::LessOrEqual.holds($r[$dst], $step.imm as u64) { $go!($step.to as usize) },
            67 => if Condition::Equal.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            68 => if Condition::Unequal.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            69 => if Condition::Test.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            70 => if Condition::Above.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            71 => if Condition::AboveOrEqual.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            72 => if Condition::Below.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            73 => if Condition::BelowOrEqual.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            74 => if Condition::Greater.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            75 => if Condition::GreaterOrEqual.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            76 => if Condition::Less.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            77 => if Condition::LessOrEqual.holds($r[$dst], $r[$src]) { $go!($step.to as usize) },
            78 => if Condition::Equal.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            79 => if Condition::Unequal.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            80 => if Condition::Test.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            81 => if Condition::Above.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            82 => if Condition::AboveOrEqual.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            83 => if Condition::Below.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            84 => if Condition::BelowOrEqual.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            85 => if Condition::Greater.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            86 => if Condition::GreaterOrEqual.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            87 => if Condition::Less.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            88 => if Condition::LessOrEqual.holds32($r[$dst] as u32, $step.imm as u32) { $go!($step.to as usize) },
            89 => if Condition::Equal.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            90 => if Condition::Unequal.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            91 => if Condition::Test.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            92 => if Condition::Above.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            93 => if Condition::AboveOrEqual.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            94 => if Condition::Below.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            95 => if Condition::BelowOrEqual.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            96 => if Condition::Greater.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            97 => if Condition::GreaterOrEqual.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            98 => if Condition::Less.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            99 => if Condition::LessOrEqual.holds32($r[$dst] as u32, $r[$src] as u32) { $go!($step.to as usize) },
            100 => $load!(Width::B1),
            101 => $load!(Width::B2),
            102 => $load!(Width::B4),
            103 => $load!(Width::B8),
            104 => $store!(Width::B1, $r[$src]),
            105 => $store!(Width::B2, $r[$src]),
            106 => $store!(Width::B4, $r[$src]),
            107 => $store!(Width::B8, $r[$src]),
            108 => $store!(Width::B1, $step.imm as u64),
            109 => $store!(Width::B2, $step.imm as u64),
            110 => $store!(Width::B4, $step.imm as u64),
            111 => $store!(Width::B8, $step.imm as u64),
            $($rest)*
        }
    };
}
pub(crate) use dispatch;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Alu, Condition, Width};

    #[test]
    fn numbers_follow_the_variants() {
        assert_eq!(code(Op::Alu64Reg(Alu::Add)), code(Op::Alu64Imm(Alu::Mov)) + 1);
        assert_eq!(code(Op::Jump64Imm(Condition::Equal)), code(Op::Alu32Reg(Alu::Mov)) + 1);
        assert_eq!(code(Op::Load(Width::B1)), code(Op::Jump32Reg(Condition::LessOrEqual)) + 1);
        assert_eq!(CONSTANT, code(Op::StoreImm(Width::B8)) + 1);
    }
}
