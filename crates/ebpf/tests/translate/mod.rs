//! Translated programs run as in the interpreter: on this project's cores, or on QEMU's.
//!
//! Without a compiler for RISC-V the tests say so and end.

mod build;
mod card;
mod random;
mod ten;
