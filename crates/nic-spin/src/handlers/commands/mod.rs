//! The commands of handlers to the card.
//!
//! | part | file |
//! |---|---|
//! | DMA and atomic operations on host memory | `dma.rs` |
//! | commands of nicety.h | `portals.rs` |
//! | copies by a cluster's DMA engine, for handlers written for PsPIN | `engine.rs` |
//! | execution of the commands of handlers written for PsPIN, by the card's engines | `engines.rs` |
//! | issue of the commands of handlers written for PsPIN, by registers | `registers.rs` |

mod dma;
mod engine;
mod engines;
mod portals;
mod registers;
