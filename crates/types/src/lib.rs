//! The base types of nicety: [`Time`] and [`Duration`] in integer picoseconds, [`Gap`] and [`Frequency`] as
//! exact rates, [`NodeId`] and [`MessageId`], [`Payload`] bytes that really move, and the [`Path`] that
//! attributes every picosecond of a latency to a [`Stage`].
//!
//! A [`Recorder`] keeps the rows of a run. [`Stream`] is the arithmetic of bytes that stream through a bus or
//! a link. A [`Histogram`] counts values in constant memory. [`View`] reads and writes the fields of headers.
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
