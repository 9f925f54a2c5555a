//! The Internet protocols of a host, in virtual time: Ethernet II with 802.1Q, ARP and NDP, IPv4 and IPv6, UDP and TCP.
//! Bytes are real and checksums correct.
//!
//! This crate contains no clock, no card and no scheduler, and nothing takes time. The driver of a [`Stack`] passes the
//! time with every call: a frame has arrived ([`Stack::receive`]), a program calls ([`Stack::connect`], [`Stack::send`]
//! and others), a timer is due ([`Stack::on_timer`]). After each call, [`Stack::next_event`] returns the changes of
//! sockets, and [`Stack::next_ready`] the sources with frames to send. [`Stack::transmit`] returns one frame of a
//! source per call, so the driver sets the pace.
//!
//! # Layers, from the bottom
//! - [`Parsed`], [`TcpHeader`] (`frame.rs`), [`verify`], [`fill`] (`checksum.rs`), [`Toeplitz`] (`rss.rs`),
//!   [`segment`], [`coalesce`] (`offload.rs`): frames as bytes, and the functions of a card on them.
//! - `link.rs`, `header.rs`, `discovery.rs`, `neighbour.rs`: framing, headers, and neighbours on the link.
//! - `tcp/`: the state machine of a connection, which handles segments, not frames.
//! - [`Stack`] (`stack/`): the tables, and the dispatch to connections.
//!
//! Two stacks, a cable, and a byte:
//! ```
//! use nicety_stack::*;
//! use nicety_types::{Duration, Time};
//! use std::net::Ipv4Addr;
//!
//! let host = |n: u8| {
//!     let ipv4 = Network { address: Ipv4Addr::new(10, 0, 0, n), prefix: 24, gateway: None };
//!     Stack::new(StackSpec { mac: [2, 0, 0, 0, 0, n], ipv4: Some(ipv4), ..StackSpec::default() }).unwrap()
//! };
//! let (mut ends, mut now) = ([host(1), host(2)], Time::ZERO);
//! let listener = ends[1].listen(80, 8, &Options::default())?;
//! let client = ends[0].connect(now, "10.0.0.2:80".parse().unwrap(), None, &Options::default())?;
//! let mut server = None;
//! for _ in 0..20 {
//!     now += Duration::from_us(10);
//!     for from in [0, 1] {
//!         while let Some(source) = ends[from].next_ready() {
//!             let mut frame = Vec::new();
//!             while ends[from].transmit(now, source, &mut frame).is_some() {
//!                 ends[1 - from].receive(now, &frame, ChecksumStatus::Unknown);
//!             }
//!         }
//!         while let Some(event) = ends[from].next_event() {
//!             match event {
//!                 Event::Connected(id) => assert_eq!(ends[0].send(now, id, b"!")?, 1),
//!                 Event::Incoming(listener) => server = Some(ends[1].accept(listener)?),
//!                 _ => {}
//!             }
//!         }
//!     }
//! }
//! let mut bytes = [0; 8];
//! assert_eq!(ends[1].recv(now, server.unwrap(), &mut bytes)?, 1);
//! assert_eq!(&bytes[..1], b"!");
//! # Ok::<(), Error>(())
//! ```
//!
//! # Limits
//! No fragments, no IP options or extension headers, no routing, no multicast except neighbour discovery, no ECN, no
//! path MTU discovery, no keep-alive. ICMP errors are sent but not received.
#![forbid(unsafe_code)]

mod checksum;
mod connection;
mod discovery;
mod error;
mod frame;
mod header;
mod link;
mod neighbour;
mod offload;
mod rss;
mod spec;
mod stack;
mod table;
mod tcp;

pub use checksum::{fill, verify};
pub use error::{Error, SpecError};
pub use frame::{ETHERNET, IpPacket, Malformed, Parsed, TAG, TcpHeader};
pub use offload::{coalesce, segment};
pub use rss::{MICROSOFT_KEY, Toeplitz};
pub use spec::{CongestionControl, LEAST_MTU_V4, LEAST_MTU_V6, MOST_BUFFER, Network, Options, StackSpec};
pub use stack::{
    Arrival, ChecksumStatus, ConnectionId, Counters, DatagramId, Drop, Event, ListenerId, Outgoing, Source,
    Stack,
};
