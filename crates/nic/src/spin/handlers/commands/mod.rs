//! The commands that handlers give to the card.
//!
//! | part | file |
//! |---|---|
//! | output of handlers | `printf.rs` |
//! | DMA and atomic operations on host memory | `dma.rs` |
//! | commands of nicety.h | `portals.rs` |
//! | commands of handlers written for PsPIN | `registers.rs` |

mod dma;
mod portals;
pub(in crate::spin) mod printf;
mod registers;
