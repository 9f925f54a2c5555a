//! The hXDP card: a core with several lanes that executes eBPF itself.
//!
//! Source: Brunella et al., "hXDP: Efficient Software Packet Processing on FPGA NICs", OSDI 2020. The card stands on a NetFPGA-SUME.
//!
//! # The path of a frame
//! - The *input queue* holds frames. Its head goes into the packet buffer, some bytes a cycle.
//! - The *core* starts with the first bytes. It runs a row of operations in a cycle ([`nicety_ebpf::lanes`]). It waits for bytes that
//!   are not in the buffer yet, and for helpers that take longer than their row.
//! - Then the *emission* sends the frame, some bytes a cycle, while the core has the next one.
//!
//! | file | content |
//! |---|---|
//! | `spec.rs` | the spec |
//! | `program.rs` | a program on the card: checks, rows, maps |
//! | `cycles.rs` | cycles of a frame, from the rows that ran |
//! | `pipeline.rs` | frames one behind another: input queue, core, emission |
//! | `published.rs` | programs that the paper publishes, as dumps |
//! | `design.rs` | the seam |

mod cycles;
mod design;
mod pipeline;
mod program;
pub mod published;
mod spec;

pub use cycles::{Cycles, cycles};
pub use design::DESIGN;
pub use pipeline::{Disposition, Pipeline, Through};
pub use program::{HxdpError, Program, Ran};
pub use spec::{CoreSpec, HELPERS, HxdpSpec, MAPS, TransferSpec};
