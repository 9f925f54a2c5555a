//! The memories of a microengine, and their addresses. The addresses are equal to those in `nfp.h`.

/// The microengine's own local memory: the program's data, then the stacks of its contexts.
pub const LOCAL: u32 = 0x1000_0000;
/// Code and constants.
pub const CODE: u32 = 0x1d00_0000;
/// The cluster local scratch of the microengine's island.
pub const CLS: u32 = 0x2000_0000;
/// The cluster target memory of the microengine's island.
pub const CTM: u32 = 0x3000_0000;
/// The internal memory.
pub const IMEM: u32 = 0x4000_0000;
/// The external memory.
pub const EMEM: u32 = 0x8000_0000;

/// The kind of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Cluster local scratch, one per island.
    Cls,
    /// Cluster target memory, one per island.
    Ctm,
    /// Internal memory.
    Imem,
    /// External memory.
    Emem,
}

impl MemoryKind {
    /// All kinds, nearest first.
    pub const ALL: [MemoryKind; 4] = [MemoryKind::Cls, MemoryKind::Ctm, MemoryKind::Imem, MemoryKind::Emem];

    /// Returns the memory's name in messages and tables.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryKind::Cls => "CLS",
            MemoryKind::Ctm => "CTM",
            MemoryKind::Imem => "IMEM",
            MemoryKind::Emem => "EMEM",
        }
    }

    /// Returns the NAME of the memory's spec section `memory.NAME`.
    pub const fn key(self) -> &'static str {
        match self {
            MemoryKind::Cls => "cls",
            MemoryKind::Ctm => "ctm",
            MemoryKind::Imem => "imem",
            MemoryKind::Emem => "emem",
        }
    }

    /// Returns the memory's first address.
    pub const fn base(self) -> u32 {
        match self {
            MemoryKind::Cls => CLS,
            MemoryKind::Ctm => CTM,
            MemoryKind::Imem => IMEM,
            MemoryKind::Emem => EMEM,
        }
    }

    /// Whether each island has its own memory of this kind.
    pub const fn of_island(self) -> bool {
        matches!(self, MemoryKind::Cls | MemoryKind::Ctm)
    }
}
