//! The components of cards, and the seam between a card's design and all other code.
//!
//! A [`CardSpec`] describes a card, and is read from a TOML file. One [`Design`] serves all cards with the same
//! arrangement of components. `design.rs` is the seam. Each design is a crate of its own. This crate depends on no
//! design.
//!
//! - [`library`]: `send` and `recv` in software, over the transport of a design.
//! - [`parts`]: components that several cards share.
//! - `sections.rs`: sections of specs that several designs have.
//! - `board.rs`: a type with the components of a card between host memory and its link.
//! - `messages.rs`: messages between ranks.
//! - `programs.rs`, `text.rs`: output and failures of programs, and texts of notes.

mod board;
mod counters;
mod design;
mod error;
pub mod library;
mod messages;
pub mod parts;
mod programs;
mod sections;
mod text;

pub use board::{Board, BoardSpec, read_board};
pub use counters::{CardReport, Counters};
pub use design::{
    Card, CardSpec, Design, LinkLayer, NodeContext, OfDesign, RankedCards, WrongDesign, cards_of, read,
    stages,
};
pub use error::CardError;
pub use messages::{
    Arrival, Caller, Calling, LARGEST_TAG, MessageNumbers, Outgoing, Pairs, PostedReceive, TAG_BITS, Tags,
    Wanted, check_tag,
};
pub use programs::{FailureKind, LINES_KEPT, Log, LogLine, Logged, ProgramFailure, RefusedCommand, lines};
pub use sections::{
    NodeSpec, read_bus, read_costs, read_engine, read_isa, read_kernel, read_misaligned, read_node,
    read_ports, read_threads, read_transport,
};
pub use text::{BlockedSends, LISTED, at_ranks, counted};
