//! The kind of core that runs an image: its instruction set, its [`CycleCosts`], and its treatment of
//! misaligned accesses.

use crate::costs::CycleCosts;
use crate::isa::Isa;
use crate::overlap::Overlap;

/// The treatment of a load or store at an address that is not a multiple of its size. Atomics always trap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Misaligned {
    /// It traps.
    #[default]
    Trap,
    /// It works, and costs [`CycleCosts::misaligned_extra`] more.
    Costs,
}

/// A kind of core. An [`Image`](crate::Image) is decoded for one kind and shared by all its cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    /// Its instruction set.
    pub isa: Isa,
    /// The cycles of each instruction.
    pub costs: CycleCosts,
    /// The treatment of misaligned accesses.
    pub misaligned: Misaligned,
    /// The overlap of instructions. Without one, each instruction begins at the end of the previous one.
    pub overlap: Option<Overlap>,
}

impl Default for Core {
    /// RV32IMAC in order, one cycle per instruction; misaligned accesses trap.
    fn default() -> Core {
        Core {
            isa: Isa::RV32IMAC,
            costs: CycleCosts::default(),
            misaligned: Misaligned::default(),
            overlap: None,
        }
    }
}
