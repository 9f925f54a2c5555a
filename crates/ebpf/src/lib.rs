//! XDP programs: eBPF objects, instructions, an interpreter, maps and helpers, as in Linux.
//!
//! Sources: RFC 9669 for instructions; `include/uapi/linux/bpf.h` of Linux 6.18 for numbers; results of `BPF_PROG_TEST_RUN` of the
//! same kernel for maps, helpers and edges of packets. The tests compare this crate with a kernel where they may.
//!
//! # Layers, from the bottom
//! - [`Instruction`] (`instruction.rs`): a slot of code; [`Op`] and [`Step`] (`op.rs`): its compact form; [`decode`] makes it.
//! - [`Object`] (`object/`): an ELF file with its programs, maps, types and lines. [`Object::link`] gives a [`Linked`] program.
//! - [`Map`] (`map/`): maps by type, with the error numbers of Linux.
//! - [`Machine`] (`machine/`): runs a program on a [`Packet`]. Each access is checked; a [`Trap`] names instruction and line.
//! - [`card`] (`card/`): maps and data in the memory of a card, for the runtime in `handlers/runtime/xdp`.
//! - [`report`] (`report/`): objects and runs as JSON.
//! - [`lanes`] (`lanes/`): programs as rows, for a core with several lanes that runs eBPF itself.
//! - [`translate`] (`translate/`): programs as RISC-V assembly, for the processors of a card.
//!
//! # Addresses
//! The upper half of an address names a region: context, packet, stacks, or the values of a map. So a pointer that leaves its region
//! never reaches other bytes.

mod aborted;
pub mod address;
pub mod asm;
pub mod card;
mod decode;
mod error;
pub mod helper;
pub mod instruction;
pub mod lanes;
mod linking;
mod machine;
mod map;
mod object;
mod op;
pub mod report;
pub mod translate;

pub use aborted::{Aborted, Site};
pub use decode::{Code, DecodeError, MOST_SLOTS, decode};
pub use error::ObjectError;
pub use helper::Helper;
pub use instruction::Instruction;
pub use machine::{
    Calls, HEADROOM, LINEAR, LONGEST, Limits, Machine, Outcome, Packet, REDIRECT, Redirect, SHORTEST, Sample,
    Trace, Trap, TrapKind, verdict,
};
pub use map::{Errno, Flags, Item, Map, MapKind};
pub use object::btf;
pub use object::{Attach, Entry, Initial, Line, Linked, MapDefinition, Object};
pub use op::{Alu, Atomic, Condition, Group, Op, Step, Width};
