//! The base types of nicety:
//!
//! - [`Time`] and [`Duration`], in integer picoseconds;
//! - [`Gap`] and [`Frequency`], exact rates;
//! - [`NodeId`] and [`MessageId`];
//! - [`Payload`], real bytes of packets;
//! - [`Path`], which attributes every picosecond of a latency to a [`Stage`];
//! - [`Recorder`], which keeps the rows of a run;
//! - [`Stream`], the arithmetic of bytes that stream through a bus or a link;
//! - [`Histogram`], counts of values in constant memory;
//! - [`View`], which reads and writes the fields of headers.
//!
//! Nothing here knows about events, cards or protocols.

mod histogram;
mod id;
mod path;
mod payload;
mod rate;
mod record;
mod resource;
mod stage;
mod stream;
mod time;
mod view;

pub use histogram::Histogram;
pub use id::{LinkId, MessageId, NodeId};
pub use path::{Account, Path};
pub use payload::{Buffer, Payload, PhantomRead, Segment};
pub use rate::{Frequency, Gap};
pub use record::{
    Arrived, HandlerRun, LeftOut, Level, MessageRows, NodeRecords, PacketArrived, PacketSent, Recorder, Sent,
    Slice, Starter,
};
pub use resource::{End, FlowPoint, Pick, Resource, ResourceKind, Tracks};
pub use stage::{DeclaredStage, Stage};
pub use stream::{Burst, Flight, Handover, Occupancy, Stream};
pub use time::{Duration, Time};
pub use view::View;
