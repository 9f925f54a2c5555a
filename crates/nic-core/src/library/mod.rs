//! The library of `send` and `recv` on a host, for cards that leave the matching of messages to software.
//!
//! [`Messages`] is the library's interface to a host's program, and [`Transport`] is the part that each design
//! implements. The design moves bytes and takes simulated time. This module does matching, probes, cancellation,
//! failures and window counts.
//!
//! | file | content |
//! |---|---|
//! | `receiving.rs` | posted receives and messages that have arrived |
//! | `announced.rs` | long messages at their sender, between request to send (RTS) and clear to send (CTS) |
//! | `window.rs` | the limit of messages to a peer that no receive has taken |
//! | `state.rs` | the state of a host's library |
//! | `types.rs` | the types that the design defines |
//! | `transport.rs` | the functions that the design implements, and operations that use them |
//! | `calls.rs` | the calls of a host's program |

mod announced;
mod calls;
mod receiving;
mod state;
mod transport;
mod types;
mod window;

pub use announced::{Announced, Announcements};
pub use calls::Messages;
pub use receiving::{ArrivedMessage, Receiving};
pub use state::{Library, to_its_end};
pub use transport::Transport;
pub use types::Types;
pub use window::{Peer, Windows, count};
