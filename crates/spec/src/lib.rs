//! Card specifications: TOML files with units and provenance. Errors name the place and a correction.
//!
//! This crate contains no card. [`Spec::load`] reads a file and the specs that it extends. Each part of a card reads
//! its own section through a [`Reader`], and gives the meaning of every parameter. A key that no part reads is an
//! error. [`Reader::finish`] returns either all errors, in the order of the file, or the [`Listing`]. The listing has
//! each parameter with its unit, meaning, kind and source. Its hash identifies the card.
//!
//! A shipped spec gives each value with its kind (`measured`, `documented`, `calibrated` or `assumed`) and its source.
//! A user's file may give plain values and extend a shipped spec:
//!
//! ```toml
//! # specs/spin-discrete.toml
//! [bus]
//! latency = { value = "250 ns", kind = "documented", source = "SC17" }
//!
//! # my.toml
//! extends = "spin-discrete"
//! [bus]
//! latency = "300 ns"
//! ```
//!
//! Numbers are exact: a decimal is read as a fraction, not as a floating-point number. [`units`] lists the units.
//!
//! ```
//! use nicety_spec::{SHIPPED, Spec};
//!
//! let mine = "extends = 'spin-discrete'\n[bus]\nlatency = '300 ns'\n[hpu]\ncorse = 8\n";
//! let spec = Spec::from_text("my.toml", mine, &[], SHIPPED)?;
//! let reader = spec.reader();
//! let bus = reader.section("bus");
//! assert_eq!(bus.time("latency", "one crossing, either way").to_string(), "300 ns");
//! assert_eq!(bus.gap("gap", "per byte, each direction").to_string(), "15.6 ps/B");
//! assert_eq!(reader.section("hpu").count("cores", 1..=1024, "handler cores"), 4);
//! let errors = reader.finish().unwrap_err().to_string();
//! assert!(errors.contains("my.toml:5:1") && errors.contains("did you mean cores?"));
//! # Ok::<(), nicety_spec::SpecErrors>(())
//! ```

mod document;
mod error;
mod library;
mod listing;
mod ratio;
mod reader;
mod spec;
mod suggest;
pub mod units;
mod unknown;
mod varied;

pub use error::{Place, SpecError, SpecErrors};
pub use library::{Library, SHIPPED};
pub use listing::{Kind, Listing, Parameter};
pub use ratio::Ratio;
pub use reader::{Change, Reader, Remedy, Section};
pub use spec::{Spec, parse_override};
pub use units::Quantity;
pub use varied::Variation;
