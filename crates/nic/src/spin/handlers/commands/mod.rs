//! The commands that handlers give to the card.
//!
//! | part | file |
//! |---|---|
//! | output of handlers | `printf.rs` |
//! | DMA and atomic operations on host memory | `dma.rs` |
//! | commands of nicety.h | `portals.rs` |
//! | copies by a cluster's DMA engine, for handlers written for PsPIN | `engine.rs` |
//! | engines at work on commands of these | `engines.rs` |
//! | these commands, and the registers by which they are given | `registers.rs` |

mod dma;
mod engine;
mod engines;
mod portals;
pub(in crate::spin) mod printf;
mod registers;
