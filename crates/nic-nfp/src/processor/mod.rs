//! The processor: microengines with several contexts each, which hide the latency of memories.
//!
//! A file imports only from files above it in this table:
//!
//! | file | contents |
//! |---|---|
//! | `account.rs` | the counters of cycles by cause |
//! | `intrinsics.rs` | the calls that the core itself serves |
//! | `memory.rs` | [`Memory`]: CLS, CTM, IMEM, EMEM, each with a queue |
//! | `program.rs` | [`Program`]: compiled C that fits into code store and local memory |
//! | `service.rs` | the interface for calls that the card serves |
//! | `profile.rs` | the cycles of processes by instruction |
//! | `engine.rs` | a microengine: its contexts and the choice of the next |
//! | `observe.rs` | an observer of the instructions of processes |
//! | `nfp.rs` | [`Nfp`]: all microengines and memories, and the functions that the card calls |
//! | `watched.rs` | the reports to an observer between slices |
//! | `execute.rs` | the task that runs a microengine: references, atomics, signals |
//!
//! # Timing
//! A context computes until it refers to a memory outside the core, waits for a signal or yields. The instruction of
//! the reference itself counts as computing. From the end of this instruction, the context sleeps until the memory is
//! done, and then waits until the core is free. The core takes the next ready context round-robin. A switch to another
//! context takes `hpu.cycles.switch` cycles. The code store is in the core, so the fetch of an instruction takes no
//! cycles. A read of a constant from the code store takes the same time as one from local memory.
//!
//! All cores, the memories on the chip and the counters share one clock. Its cycle 0 is virtual time 0.

mod account;
mod engine;
mod execute;
mod intrinsics;
mod memory;
mod nfp;
pub mod observe;
mod profile;
mod program;
mod service;
mod watched;

pub use account::{ContextCounters, CoreCounters};
pub use engine::{Outcome, SIGNALS};
pub use intrinsics::crc32;
pub(crate) use intrinsics::{XDP_END, XDP_TAKE};
pub(crate) use memory::Reference;
pub use memory::{Memory, MemoryCounters, Outside};
pub use nfp::{Nfp, Trapped};
pub use profile::{ProcessProfile, ProgramProfile};
pub use program::{LEAST_STACK, Program, ProgramError};
pub use service::Place;
pub(crate) use service::{Served, Services};

/// The numbers of the calls, which a context puts into register a7.
pub mod number {
    pub use nicety_hpu::calls::process::{
        CHANNEL_READ, CHANNEL_READ_IND, CHANNEL_REGISTER, CHANNEL_SELECT, CHANNEL_WRITE, CHANNEL_WRITE_IND,
        CRC32, ETH_MOVE, ETH_OPEN, ETH_RECEIVE, ETH_RECEIVE_FROM, ETH_SEND, ETH_SEND_TO, ETH_TYPE, NODE,
        READ, SIGNAL, WAIT_ALL, WAIT_ANY, WRITE, YIELD,
    };
}
