//! Components of cards. Each component depends on no design and has its own tests.
//!
//! | component | file |
//! |---|---|
//! | reads and writes of a host's memories over the bus | `dma.rs` |
//! | access to host memory over PCI Express, by commands and DMA engines, in time only | `access.rs` |
//! | channels of a DMA engine, which are set up in parallel | `engine.rs` |
//! | first-fit allocation in a range of addresses | `first_fit.rs` |
//! | notification of messages without a receive | `early.rs` |
//! | arrived packets or messages, and the calls that wait for them | `arrivals.rs` |
//! | posted receives, and messages without a receive | `matching.rs` |
//! | filter of duplicate message numbers | `duplicates.rs` |
//! | filter of duplicate sequence numbers in a window | `window.rs` |
//! | packets from a card to itself | `loopback.rs` |
//! | departure times of a generator's packets | `pace.rs` |
//! | reliable transport between a card and its link, for networks that lose packets | `transport` |

mod access;
mod arrivals;
mod dma;
mod duplicates;
mod early;
mod engine;
mod first_fit;
mod loopback;
mod matching;
mod pace;
pub mod stages;
pub mod transport;
mod window;

pub use access::Access;
pub use arrivals::Arrivals;
pub use dma::Dma;
pub use duplicates::DuplicateFilter;
pub use early::Early;
pub use engine::{Engine, EngineSpec, LastUse, Moving};
pub use first_fit::FirstFit;
pub use loopback::Loopback;
pub use matching::Matching;
pub use pace::{DueTime, Offered, Pace};
pub use window::Window;
