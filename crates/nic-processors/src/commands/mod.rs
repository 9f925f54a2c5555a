//! The commands of handlers to a card: their numbers, refusals and transfers.
//!
//! | part | file |
//! |---|---|
//! | numbers of commands and of their results | `codes.rs` |
//! | commands that the card has refused | `refusals.rs` |
//! | DMA transfers in flight of a thread's handlers | `transfers.rs` |

pub mod codes;
pub mod refusals;
pub mod transfers;
