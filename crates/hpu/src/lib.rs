//! Handler processors: RV32 cores, contexts, memories, ELF and line tables.
