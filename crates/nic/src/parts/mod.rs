//! Parts of cards: each exists once, knows no design, and has tests of its own.
//!
//! | part | file |
//! |---|---|
//! | reads and writes of the memories of a host over the bus | `dma.rs` |
//! | channels of a DMA engine, set up side by side | `engine.rs` |
//! | pieces of a range of addresses, first fit | `first_fit.rs` |
//! | notice of messages that no receive has taken | `early.rs` |
//! | posted receives, and messages that came before theirs | `matching.rs` |
//! | message numbers seen, to detect duplicates | `seen.rs` |
//! | sequence numbers seen in a window of them, likewise | `window.rs` |
//! | packets of a card to itself | `loopback.rs` |
//! | when the packets of a generator leave | `pace.rs` |
//! | reliable transport between a card and its link, for networks that lose packets | `transport` |

mod dma;
mod early;
mod engine;
mod first_fit;
mod loopback;
mod matching;
mod pace;
mod seen;
pub mod stages;
pub mod transport;
mod window;

pub use dma::Dma;
pub use early::Early;
pub use engine::{Engine, LastUse, Moving};
pub use first_fit::FirstFit;
pub(crate) use loopback::Loopback;
pub use matching::Matching;
pub use pace::{Due, Offered, Pace};
pub use seen::Seen;
pub use window::Window;
