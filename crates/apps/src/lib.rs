//! Applications of programmable network cards, as users would write them over the crate `nicety`.
//!
//! - [`tsp`]: the travelling salesman on a network flow processor.
//! - [`cardinality`]: distinct addresses of a capture, counted on a network flow processor by [`pcsa`].
//!
//! The programs on the cards are `handlers/nfp/tsp.c` and `handlers/nfp/pcsa.c`. Both are measured on a processor by
//! itself, or on a card beside its host: `experiment.rs`.

pub mod cardinality;
mod experiment;
pub mod pcsa;
pub mod tsp;

pub use experiment::ExperimentError;
