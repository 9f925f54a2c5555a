//! An open laboratory for programmable network cards. It shows whether code on a card is correct, sustains line rate, and speeds
//! up the application.
//!
//! # The layers, from the top
//! The crate `nicety-bench` has benchmarks, and `nicety-apps` has applications. Both use only the public functions of
//! this crate.
//!
//! - [`Cluster`] and [`Host`]: nodes with cards, and the programs that run on them.
//! - [`commands`]: the interface for programs in other languages, for example Python.
//! - [`cards`]: the shipped specifications of cards, and a reader for specifications of users.
//! - [`record`]: the recording of a run, as tables and as a timeline.
//! - [`sources`]: the shipped C handlers and headers.
//!
//! A program is an async function of one host. This example sends one message:
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

mod capture;
pub mod cards;
mod cluster;
pub mod commands;
pub mod designs;
mod environment;
mod error;
pub mod faults;
pub mod flow;
mod host;
pub mod options;
mod peers;
pub mod record;
pub mod report;
pub mod sources;

pub use capture::{Capture, CapturedRun};
pub use cluster::{
    Allowed, Cluster, ClusterConfig, Failure, LargeCluster, NetworkStatistics, NodeReport, Noise,
    PortStatistics, Run, Spread, SwitchStatistics, Topology, TrafficReport, in_parts,
};
pub use environment::{CardManifest, Compiled, Environment, Manifest, ProgramManifest, SourceManifest};
pub use error::{Error, failure_lines, from_json};
pub use host::{
    Alternative, Buffer, CardForXdp, Channel, Channels, Device, FrameHandlers, Gpu, Host, Job, Later,
    LoadedXdp, PendingMessage, PendingRecv, Portals, Rdma, Received, Sockets, Tasks, Thread, Vni, VniProcess,
    Xdp,
};
pub use nicety_fabric::{
    Alpha, Buffering, Cause, Drops, FaultStatistics, Faults, FlowControl, LinkFaults, LostPacket,
    NodeFailure, Outage, PauseSpec, Per, Place, QueueStatistics, Rates,
};
pub use nicety_host::{
    HostBytes, Intervals, KernelCounters, NoTrace, NoiseSpec, NoiseTrace, PROCESS_ADDRESSES, PROCESS_BYTES,
    ProcessBytes, Regularity, Work,
};
pub use nicety_kernel::Interrupt;
pub use nicety_nic_core::parts::transport::{TransportStatistics, Undelivered};
pub use nicety_nic_core::{
    CardReport, CardSpec, Design, FailureKind, LARGEST_TAG, LinkLayer, Log, LogLine, Logged, Pairs,
    ProgramFailure, RefusedCommand, TAG_BITS, Tags,
};
pub use nicety_nic_nfp::{
    CardMemory, ChannelCounters, ContextCounters, CoreCounters, MemoryKind, MessengerCounters,
    MicroengineReport, PortCounters, PortReport, Process, ProcessEnd, ProcessReport, Processes,
    QueueCounters, Start,
};
pub use nicety_nic_processors::{
    ApplicationConfig, ApplicationId, ApplicationReport, Attach, AttachError, HandlerError, HandlerNames,
    Handlers, HpuMemoryId, Printed, State,
};
pub use nicety_nic_spin::{CallError, Unusable};
pub use nicety_portals as portals;
pub use nicety_types::{Duration, NodeId, Time};
pub use peers::{Connected, Exchange, Outcome, Peers, Statuses};
pub use {
    nicety_nic_apenet as apenet, nicety_nic_ethernet as ethernet, nicety_nic_nfp as nfp,
    nicety_nic_qnix as qnix, nicety_nic_spin as spin,
};

/// The version of nicety.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
