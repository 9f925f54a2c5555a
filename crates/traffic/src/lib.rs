//! Traffic for network cards: Ethernet frames, and the due time of each frame.
//!
//! An expression ([`Traffic::parse`]) describes a [`Traffic`]. [`Traffic::open`] returns a [`Stream`], which returns
//! one frame after another in constant memory. Frames come from a capture, or a template makes them:
//!
//! ```text
//! capture=edge.pcapng.gz rate=wire loop packets=10M
//! udp dport=53 src=10.0.0.0/8 flows=1M zipf=1.1 size=imix rate=40Gbps arrivals=poisson
//! ```
//!
//! - [`capture`]: captures of packets, pcap and pcapng, also compressed by gzip or zstd.
//! - `expression.rs`, `parse.rs`, `error.rs`: expressions, their parser, and errors that name a position.
//! - `template.rs`, `zipf.rs`: frames of UDP and TCP in flows.
//! - `form.rs`: the forms of a packet: an Ethernet frame, or its IP packet in the byte order of PsPIN handlers.
//! - `arrivals.rs`: due times of frames.
//! - `stream.rs`: frames with their due times, one at a time; `ahead.rs`: the same frames, read ahead by a thread.
//!
//! This crate depends on no card and no simulation. The user of a stream sets the maximum length of frames. The user
//! sends a frame with the due time [`DueTime::Wire`] as soon as the wire is free.
//!
//! ```
//! use nicety_traffic::{DueTime, Traffic};
//!
//! let traffic = Traffic::parse("udp dport=53 src=10.0.0.0/24 size=64 rate=1Mpps packets=3")?;
//! let mut stream = traffic.open(1, 1518)?;
//! let mut frame = Vec::new();
//! let mut due = Vec::new();
//! while let Some(next) = stream.next_frame(&mut frame)? {
//!     assert_eq!((frame.len(), &frame[26..29], &frame[36..38]), (64, &[10, 0, 0][..], &[0, 53][..]));
//!     due.push(next);
//! }
//! let us = 1_000_000;
//! assert_eq!(due, [0, 1, 2].map(|packet| DueTime::At { at: packet * us, lasts: (packet + 1) * us }));
//! # Ok::<(), nicety_traffic::TrafficError>(())
//! ```

mod ahead;
mod arrivals;
pub mod capture;
mod checksum;
mod error;
mod expression;
mod form;
mod parse;
mod stream;
mod template;
mod zipf;

pub use ahead::Ahead;
pub use error::TrafficError;
pub use expression::{
    Addresses, Arrivals, Cut, Popularity, Ports, Protocol, Rate, Sizes, Source, Template, Traffic,
};
pub use form::{Form, core_order_header};
pub use stream::{DueTime, Stream};
