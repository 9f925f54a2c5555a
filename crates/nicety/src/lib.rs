//! An open laboratory for programmable network cards: is the code right, does it keep up with the wire, and
//! what does it buy the application?
//!
//! # The layers, from the top
//! - [`mod@bench`]: the benchmarks, which are programs over the same API that users have.
//! - [`Cluster`] and [`Host`]: nodes with cards, and the programs that run on them.
//! - [`capture`]: captures of packets, read as they come.
//! - [`cardinality`]: distinct addresses of a capture, counted on a network flow processor.
//! - [`commands`]: programs that run elsewhere, in Python for one.
//! - [`cards`]: the specifications that come with nicety, and reading one's own.
//! - [`record`]: what a run leaves to look at, as tables and as a timeline.
//! - [`tsp`]: the travelling salesman on a network flow processor.
//! - [`sources`]: the C handlers and headers that come with nicety.
//!
//! A program is an async function of one host. The ten lines that move a message:
//!
//! ```
//! use nicety::{Cluster, ClusterConfig, cards};
//!
//! let card = cards::load("spin-discrete", &[])?;
//! let mut cluster = Cluster::new(ClusterConfig::new(2, card))?;
//! cluster.program(0, |host| async move {
//!     let buffer = host.alloc(8)?;
//!     buffer.write(0, b"a packet");
//!     host.send(&buffer, 1, 7).await
//! });
//! cluster.program(1, |host| async move {
//!     let buffer = host.alloc(8)?;
//!     let received = host.recv(&buffer, Some(0), Some(7)).await?;
//!     assert_eq!((received.length, buffer.read(0, 8).as_slice()), (8, &b"a packet"[..]));
//!     assert_eq!(host.now().ps(), 693_685); // post, bus, link, match, deposit, notice
//!     Ok(())
//! });
//! cluster.run()?;
//! # Ok::<(), nicety::Error>(())
//! ```

pub mod bench;
pub mod capture;
pub mod cardinality;
pub mod cards;
mod cluster;
pub mod commands;
mod error;
mod failures;
pub mod faults;
mod host;
mod machine;
mod noise;
pub mod record;
mod refusals;
pub mod sources;
pub mod tsp;
mod verdict;

pub use cluster::{
    Cluster, ClusterConfig, NetworkStatistics, NodeReport, PortStatistics, Run, SwitchStatistics, Topology,
};
pub use error::Error;
pub use host::{Alternative, Buffer, Channel, Device, Host, PendingRecv, Received, Thread, VniProcess};
pub use machine::LargeCluster;
pub use nicety_fabric::{FaultStatistics, Faults, LinkFaults, LostPacket, NodeFailure, Outage, Place, Rates};
pub use nicety_host::{HostBytes, KernelCounters, NoiseSpec, Regularity, Work};
pub use nicety_kernel::Interrupt;
pub use nicety_nic::nfp::{
    CardMemory, ChannelCounters, ContextCounters, CoreCounters, MemoryKind, MessengerCounters,
    MicroengineReport, PortCounters, PortReport, Process, ProcessEnd, ProcessReport, Processes,
    QueueCounters, Start,
};
pub use nicety_nic::spin::{
    ApplicationConfig, ApplicationId, ApplicationReport, Attach, CallError, Fault, FaultKind, HandlerError,
    HandlerNames, Handlers, HpuMemoryId, Log, LogLine, Logged, Printed, RefusedCommand, State, Unusable,
};
pub use nicety_nic::transport::{TransportStatistics, Undelivered};
pub use nicety_nic::{CardReport, CardSpec, Design, nfp, qnix, spin};
pub use nicety_portals as portals;
pub use nicety_types::{Duration, NodeId, Time};
pub use noise::Noise;
pub use verdict::{Allowed, Failure};

/// The version of nicety.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
