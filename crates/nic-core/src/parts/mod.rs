//! Parts of cards. Each exists once, depends on no design, and has its own tests.
//!
//! | part | file |
//! |---|---|
//! | reads and writes of the memories of a host over the bus | `dma.rs` |
//! | channels of a DMA engine, set up in parallel | `engine.rs` |
//! | pieces of a range of addresses, first fit | `first_fit.rs` |
//! | notification of messages without a receive | `early.rs` |
//! | arrived packets or messages, and the calls that wait for them | `arrivals.rs` |
//! | posted receives, and messages without a receive | `matching.rs` |
//! | message numbers seen, to detect duplicates | `duplicates.rs` |
//! | sequence numbers seen in a window, to detect duplicates | `window.rs` |
//! | packets of a card to itself | `loopback.rs` |
//! | departure times of a generator's packets | `pace.rs` |
//! | reliable transport between a card and its link, for networks that lose packets | `transport` |

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
