//! A program, decoded for the checker as far as it is executed.

use crate::bits::is_immediate;
use nicety_hpu::{Image, Instruction, Kind};
use std::sync::Arc;

/// The rules for an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rules {
    /// It was not executed yet.
    #[default]
    Unknown,
    Load,
    Store,
    Branch,
    Jal,
    Jalr,
    Ecall,
    Fence,
    Csr,
    Constant,
    /// It has no result.
    Nothing,
    Atomic,
    Float,
    /// A result out of registers.
    Compute,
    /// The same, with a division that may be by zero.
    Divide,
}

impl Rules {
    fn of(kind: Kind) -> Rules {
        match kind {
            Kind::Lb | Kind::Lh | Kind::Lw | Kind::Ld | Kind::Lbu | Kind::Lhu | Kind::Lwu => Rules::Load,
            Kind::Sb | Kind::Sh | Kind::Sw | Kind::Sd => Rules::Store,
            Kind::Beq | Kind::Bne | Kind::Blt | Kind::Bge | Kind::Bltu | Kind::Bgeu => Rules::Branch,
            Kind::Jal => Rules::Jal,
            Kind::Jalr => Rules::Jalr,
            Kind::Ecall => Rules::Ecall,
            Kind::Fence | Kind::FenceI => Rules::Fence,
            Kind::Csr => Rules::Csr,
            Kind::Constant | Kind::Auipc => Rules::Constant,
            Kind::Nop | Kind::Ebreak | Kind::Illegal | Kind::CodeEnd | Kind::Through => Rules::Nothing,
            kind if kind.is_atomic() => Rules::Atomic,
            kind if kind.is_float() => Rules::Float,
            kind if divides(kind) => Rules::Divide,
            _ => Rules::Compute,
        }
    }

    /// Whether it accesses memory or leaves straight-line code.
    pub(crate) const fn ends_fence(self) -> bool {
        use Rules::{Atomic, Branch, Ecall, Jal, Jalr, Load, Store};
        matches!(self, Load | Store | Branch | Jal | Jalr | Ecall | Atomic)
    }
}

/// The effects of a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    /// Whether earlier loads acquire.
    pub acquires: bool,
    /// Whether later stores release.
    pub releases: bool,
}

/// The word of an instruction FENCE. Bits 27 to 24 are its predecessors, and bits 23 to 20 its successors. The bits of
/// each are input, output, read and write (RISC-V, the unprivileged ISA, Memory Ordering Instructions).
struct Fence(u32);

impl Fence {
    /// Whether earlier writes precede later ones, so that a store behind it releases.
    const fn releases(&self) -> bool {
        self.0 >> 24 & 1 == 1 && self.0 >> 20 & 1 == 1
    }

    /// Whether earlier reads precede later ones, so that a load before it acquires.
    const fn acquires(&self) -> bool {
        self.0 >> 25 & 1 == 1 && self.0 >> 21 & 1 == 1
    }
}

/// An instruction with facts that do not depend on its execution.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    pub instruction: Instruction,
    pub rules: Rules,
    /// Whether its second operand is the immediate.
    pub immediate: bool,
    /// Whether its result has the variable of an operand ([`crate::held::Held`]).
    pub copies: bool,
    /// Whether a fence that orders loads follows directly, so that a load acquires.
    pub before_fence: bool,
    /// The effects of a fence.
    pub fences: Fences,
}

impl Decoded {
    const UNKNOWN: Decoded = Decoded {
        instruction: Instruction { kind: Kind::Nop, rd: 0, rs1: 0, rs2: 0, imm: 0, len: 0 },
        rules: Rules::Unknown,
        immediate: false,
        copies: false,
        before_fence: false,
        fences: Fences { acquires: false, releases: false },
    };

    fn at(image: &Image, pc: u32) -> Option<Decoded> {
        let instruction = image.instruction(pc)?;
        let next = image.instruction(pc.wrapping_add(u32::from(instruction.len)));
        let kind = instruction.kind;
        let fence = |at| Fence(image.word_at(at));
        let fences = match kind {
            Kind::Fence => Fences { acquires: fence(pc).acquires(), releases: fence(pc).releases() },
            _ => Fences { acquires: false, releases: kind == Kind::FenceI },
        };
        Some(Decoded {
            instruction,
            rules: Rules::of(kind),
            immediate: is_immediate(kind),
            copies: copies(kind),
            fences,
            before_fence: next.is_some_and(|next| next.kind == Kind::Fence)
                && fence(pc.wrapping_add(u32::from(instruction.len))).acquires(),
        })
    }
}

/// The functions of `runtime/integer.c` that divide, and the words of their operands.
const DIVISIONS: [(&str, u32); 8] = [
    ("__divsi3", 1),
    ("__udivsi3", 1),
    ("__modsi3", 1),
    ("__umodsi3", 1),
    ("__divdi3", 2),
    ("__udivdi3", 2),
    ("__moddi3", 2),
    ("__umoddi3", 2),
];

/// A program, and the instructions that were reported.
pub(crate) struct Code {
    pub image: Arc<Image>,
    /// For each halfword of code the instruction there, if it was reported, and the address of the first.
    reported: Vec<Decoded>,
    first: u32,
    /// Functions that divide, where the core has no instruction: their entries, and the words of a divisor.
    pub divisions: Vec<(u32, u32)>,
}

impl Code {
    pub fn new(image: Arc<Image>) -> Code {
        let code = image.segments().iter().find(|segment| segment.executable());
        let (first, bytes) = code.map_or((0, 0), |code| (code.address(), code.size()));
        let divisions = DIVISIONS.iter().filter_map(|(name, words)| Some((image.symbol(name)?, *words)));
        let divisions = divisions.collect();
        Code { reported: vec![Decoded::UNKNOWN; bytes as usize / 2 + 1], first, divisions, image }
    }

    /// Notes the report of an instruction, and returns it.
    #[inline]
    pub fn report(&mut self, pc: u32) -> Option<Decoded> {
        let at = (pc.wrapping_sub(self.first) / 2) as usize;
        match self.reported.get(at) {
            Some(known) if known.rules != Rules::Unknown => Some(*known),
            _ => self.decode(pc, at),
        }
    }

    #[cold]
    fn decode(&mut self, pc: u32, at: usize) -> Option<Decoded> {
        let decoded = Decoded::at(&self.image, pc)?;
        if let Some(known) = self.reported.get_mut(at) {
            *known = decoded;
        }
        Some(decoded)
    }

    /// The addresses of the instructions that were reported.
    pub fn covered(&self) -> impl Iterator<Item = u32> {
        let reported = (0..).zip(&self.reported).filter(|(_, known)| known.rules != Rules::Unknown);
        reported.map(|(at, _): (u32, _)| self.first + 2 * at)
    }
}

/// Whether the result of an instruction has the variable of an operand.
fn copies(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Addi
            | Kind::Add
            | Kind::Sub
            | Kind::And
            | Kind::Andi
            | Kind::Or
            | Kind::Ori
            | Kind::Xor
            | Kind::Xori
            | Kind::Slli
            | Kind::Srli
            | Kind::Mul
    )
}

fn divides(kind: Kind) -> bool {
    use Kind::{Div, Divu, Divuw, Divw, Rem, Remu, Remuw, Remw};
    matches!(kind, Div | Divu | Divuw | Divw | Rem | Remu | Remuw | Remw)
}
