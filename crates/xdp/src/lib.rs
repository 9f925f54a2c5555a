//! XDP programs on the cores of a card.
//!
//! [`nicety_ebpf`] translates a program to assembly. The assembler and the linker make a program of it and of the runtime in
//! `handlers/runtime/xdp`. [`Loaded`] is that program with its data: functions of the runtime fill maps before a run, and read them
//! after it, on a core without time.

mod build;
mod contents;
mod error;
mod figures;
mod loaded;
mod request;

pub use build::{After, Built, after, build, finish};
pub use error::XdpError;
pub use figures::XdpFigures;
pub use loaded::{Counts, EXCHANGE, Loaded};
pub use request::Request;
