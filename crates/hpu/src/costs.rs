//! Cycles of instructions.

use crate::decode::{Class, Kind};

/// Cycles of each instruction class on an in-order core that issues one instruction at a time. On a core that
/// [overlaps](crate::Core::overlap) instructions: cycles until the result of each.
///
/// Loads and stores cost these cycles plus the latency of the region that they access
/// ([`Region::latency`](crate::Region::latency)). Taken branches and jumps cost at least one cycle with any setting, so
/// that every loop reaches its cycle limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CycleCosts {
    /// Integer arithmetic, logic, shifts, comparisons, `lui`, `auipc`; Zba, Zbb and Zbs.
    pub alu: u16,
    /// `mul`, and `mulw` of RV64.
    pub mul: u16,
    /// `mulh`, `mulhu`, `mulhsu`.
    pub mul_high: u16,
    /// `div`, `divu`, `rem`, `remu`.
    pub div: u16,
    /// `divw`, `divuw`, `remw`, `remuw` of RV64.
    pub div_word: u16,
    /// A load from a region without its own latency.
    pub load: u16,
    /// A store to a region without its own latency.
    pub store: u16,
    /// Added to an instruction that uses the value loaded by the previous instruction.
    pub load_use: u16,
    /// A branch that is not taken.
    pub branch_not_taken: u16,
    /// A branch that is taken.
    pub branch_taken: u16,
    /// `jal`.
    pub jump: u16,
    /// `jalr`: calls through pointers and returns.
    pub jump_register: u16,
    /// An access to a control and status register.
    pub csr: u16,
    /// `fadd.s`, `fsub.s`. Loads and stores of floats cost the same as those of integers.
    pub float_add: u16,
    /// `fmul.s`.
    pub float_mul: u16,
    /// `fmadd.s`, `fmsub.s`, `fnmsub.s`, `fnmadd.s`.
    pub float_fused: u16,
    /// `fdiv.s`.
    pub float_div: u16,
    /// `fsqrt.s`.
    pub float_sqrt: u16,
    /// `fcvt`: between floats and integers.
    pub float_convert: u16,
    /// `feq.s`, `flt.s`, `fle.s`, `fmin.s`, `fmax.s`, `fclass.s`.
    pub float_compare: u16,
    /// `fmv`, and `fsgnj`, which moves, negates and takes absolute values.
    pub float_move: u16,
    /// LR, SC or an AMO in a region without its own latency.
    pub atomic: u16,
    /// `fence`, `fence.i`.
    pub fence: u16,
    /// `ecall`: the issue of a command to the card, without the time of the command itself.
    pub ecall: u16,
    /// Added to a misaligned load or store, if [`Misaligned::Costs`](crate::Misaligned::Costs) allows it.
    pub misaligned_extra: u16,
}

impl CycleCosts {
    /// One cycle for every instruction and no penalties.
    pub const SINGLE_CYCLE: CycleCosts = CycleCosts {
        alu: 1,
        mul: 1,
        mul_high: 1,
        div: 1,
        div_word: 1,
        load: 1,
        store: 1,
        load_use: 0,
        branch_not_taken: 1,
        branch_taken: 1,
        jump: 1,
        jump_register: 1,
        csr: 1,
        float_add: 1,
        float_mul: 1,
        float_fused: 1,
        float_div: 1,
        float_sqrt: 1,
        float_convert: 1,
        float_compare: 1,
        float_move: 1,
        atomic: 1,
        fence: 1,
        ecall: 1,
        misaligned_extra: 0,
    };

    /// Returns the cycles of an instruction that does not branch away, without penalties.
    pub(crate) fn of(&self, kind: Kind) -> u32 {
        u32::from(match kind.class() {
            Class::Alu => self.alu,
            Class::Mul => self.mul,
            Class::MulHigh => self.mul_high,
            Class::Div => self.div,
            Class::DivWord => self.div_word,
            Class::Load => self.load,
            Class::Store => self.store,
            Class::Branch => self.branch_not_taken,
            Class::Jump => self.jump.max(1),
            Class::JumpRegister => self.jump_register.max(1),
            Class::Csr => self.csr,
            Class::FloatAdd => self.float_add,
            Class::FloatMul => self.float_mul,
            Class::FloatFused => self.float_fused,
            Class::FloatDiv => self.float_div,
            Class::FloatSqrt => self.float_sqrt,
            Class::FloatConvert => self.float_convert,
            Class::FloatCompare => self.float_compare,
            Class::FloatMove => self.float_move,
            Class::Atomic => self.atomic,
            Class::Fence => self.fence,
            Class::Ecall => self.ecall,
            Class::Never => 0,
        })
    }
}

impl Default for CycleCosts {
    fn default() -> CycleCosts {
        CycleCosts::SINGLE_CYCLE
    }
}
