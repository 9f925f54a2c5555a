//! A network flow processor, as in the NFComms paper: microengines with processes, and channels from programs of the
//! host.
//!
//! A module imports only from modules above it in this table:
//!
//! | module | contents |
//! |---|---|
//! | `stages` | the stages of a message that only this card has |
//! | `map` | the memories of a microengine, and their addresses |
//! | `wire` | [`Frame`]: the header of an Ethernet frame as bytes |
//! | `spec` | [`NfpSpec`], and its spec keys |
//! | `processor` | [`Nfp`]: microengines, their programs, the memories |
//! | `xdp` | [`XdpCard`](xdp::XdpCard): frames of a port for XDP programs on contexts |
//! | `card` | [`Card`]: the processor, its channels to the host, and the host's driver |
//! | `messenger` | [`Messenger`]: messages between hosts, forwarded by processes on the card |
//! | `processes` | [`ProcessTable`]: the processes started by the host, and their outcomes |
//! | `design` | the card as a [`Design`](nicety_nic_core::Design), with its deadlock hints |

mod card;
mod design;
pub mod map;
mod messenger;
mod processes;
mod processor;
mod spec;
pub mod stages;
mod wire;
pub mod xdp;

pub use card::{
    Card, ChannelCounters, ChannelError, Device, Job, MESSAGE_QUEUE, Pending, PortCounters, QueueCounters,
    Selected, Slot,
};
pub use design::DESIGN;
pub use design::{FurtherReport, Report};
pub use map::MemoryKind;
pub use messenger::{Arrival, INLINE, MessageError, Messenger, MessengerCounters, Posted, WINDOW};
pub use nicety_channels::{
    Channel, Completion, Direction, Error as ChannelRefusal, Failure as ChannelFailure, Guard,
    PAYLOAD_BYTES as DIRECT_BYTES, Payload, Want,
};
pub use processes::{
    CardMemory, MicroengineReport, PortReport, Process, ProcessEnd, ProcessReport, ProcessTable, Processes,
    Start,
};
pub use processor::observe;
pub use processor::{
    ContextCounters, CoreCounters, LEAST_STACK, Memory, MemoryCounters, Nfp, Outcome, Outside, Place,
    ProcessProfile, Program, ProgramError, ProgramProfile, SIGNALS, Trapped, crc32, number,
};
pub use spec::{ChannelSpec, DriverSpec, ManagerSpec, MemorySpec, NfpSpec, PortSpec, XdpSpec};
pub use wire::{Address, Frame};
