//! The Internet protocols of a host, in virtual time: Ethernet II with 802.1Q, ARP and NDP, IPv4 and IPv6, UDP and TCP, in
//! real bytes with true checksums.
//!
//! There is no clock, no card and no scheduler in here, and nothing takes time. Whoever drives a [`Stack`] says what time
//! it is with every call: a frame has come ([`Stack::receive`]), a program calls ([`Stack::connect`], [`Stack::send`]
//! and the others), a timer is due ([`Stack::on_timer`]). After each, [`Stack::next_event`] has the changes of
//! sockets, and [`Stack::next_ready`] those who have frames to send, which [`Stack::transmit`] gives out one at a time,
//! at the pace of whoever takes them.
//!
//! # Layers, from the bottom
//! - [`Parsed`], [`TcpHeader`] (`frame.rs`), [`verify`], [`fill`] (`checksum.rs`), [`Toeplitz`] (`rss.rs`), [`segment`],
//!   [`coalesce`] (`offload.rs`): frames as bytes, and what a card does with them.
//! - `link.rs`, `neighbour.rs`: framing, and who is where on the link.
//! - `clock.rs`, `engine.rs`: smoltcp, driven a packet of one connection at a time.
//! - `watch.rs`, `connection.rs`: a connection, and the losses that smoltcp leaves to its timeout.
//! - [`Stack`] (`stack/`): the tables, and what happens to whom.
//!
//! # smoltcp's TCP, and what is beside it
//! smoltcp has the state machine of TCP, windows, reassembly and Reno's congestion control. It looks at every socket for
//! each packet and has no listener, so each connection has a socket set of its own, made when the SYN comes; the table
//! of flows, backlogs, resets to closed ports and resolution of neighbours are this crate's.
//!
//! Its least retransmission timeout is one second, fixed. Its clock therefore runs faster than virtual time, by
//! 1 s / [`StackSpec::min_rto`], and everything else that it measures shrinks along: the first timeout (1 s of its
//! time), the longest (60 s), TIME-WAIT (10 s), the rate of challenge acknowledgements (one a second). With a
//! `min_rto` of 200 ms these are 200 ms, 12 s, 2 s and one every 200 ms. What a spec names in seconds is not scaled: delayed
//! acknowledgements, `timeout`, `fin_timeout`, probes.
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
//! No fragments, no IP options or extension headers, no routing, no multicast but neighbour discovery, no ECN, no path MTU
//! discovery, no keep-alive; SACK is sent but not heeded; ICMP errors are sent but not taken.
#![forbid(unsafe_code)]

mod checksum;
mod clock;
mod connection;
mod engine;
mod error;
mod frame;
mod link;
mod neighbour;
mod offload;
mod rss;
mod spec;
mod stack;
mod table;
mod watch;

pub use checksum::{fill, verify};
pub use error::{Error, SpecError};
pub use frame::{ETHERNET, IpPacket, Malformed, Parsed, TAG, TcpHeader};
pub use offload::{coalesce, segment};
pub use rss::{MICROSOFT_KEY, Toeplitz};
pub use spec::{LEAST_MTU_V4, LEAST_MTU_V6, MOST_BUFFER, Network, Options, StackSpec};
pub use stack::{
    Arrival, ChecksumStatus, ConnectionId, Counters, DatagramId, Drop, Event, ListenerId, Outgoing, Source,
    Stack,
};
