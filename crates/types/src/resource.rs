//! Resources of a node that are occupied for a time, in recordings and timelines.
//!
//! Each part of the host, network or card declares its own kinds. This module declares the kinds of every node.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ptr;

/// A kind of resource.
#[derive(Debug)]
pub struct ResourceKind {
    /// The name in tables and timelines.
    pub name: &'static str,
    /// Its place among the resources of a node. The places of nicety's own kinds are multiples of 10.
    pub place: u16,
    /// The arrangement of its uses in a timeline.
    pub tracks: Tracks,
    /// Whether uses may nest: a call inside a call, a command inside a handler.
    pub nests: bool,
    /// The points of a message's flow through a timeline that are uses of this kind.
    pub flow: &'static [FlowPoint],
    /// The purposes that mark a use as the run of a program. Such a program may send messages.
    pub programs: &'static [&'static str],
}

/// The arrangement of a resource's uses in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracks {
    /// On one track. If uses overlap, which is an exception, the later use is on an additional track.
    One,
    /// On numbered tracks, one for each resource of the kind.
    Numbered,
    /// On one track, for a resource with several transfers in flight. Simultaneous transfers are on additional tracks.
    Overlapping,
}

/// A point of a message's flow through a timeline: one use of a resource for the message.
#[derive(Debug)]
pub struct FlowPoint {
    /// The end of the message at which the point is.
    pub end: End,
    /// The choice among several uses.
    pub pick: Pick,
    /// The purposes of the use; any purpose if empty.
    pub purposes: &'static [&'static str],
}

/// An end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sending node.
    Source,
    /// The target node.
    Target,
}

/// A choice among several uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first to be recorded.
    First,
    /// The last to begin.
    Last,
}

/// A resource of a node.
#[derive(Clone, Copy)]
pub struct Resource {
    kind: &'static ResourceKind,
    number: Option<u32>,
}

impl Resource {
    /// Returns the only resource of a kind. Some kinds number their resources only after the run. For such a kind, the
    /// result stands for all its resources.
    pub const fn new(kind: &'static ResourceKind) -> Resource {
        Resource { kind, number: None }
    }

    /// Returns resource `number` of the kind.
    pub const fn numbered(self, number: u32) -> Resource {
        Resource { number: Some(number), ..self }
    }

    /// Its kind.
    pub const fn kind(self) -> &'static ResourceKind {
        self.kind
    }

    /// The name in tables and timelines.
    pub const fn name(self) -> &'static str {
        self.kind.name
    }

    /// The index among resources of the kind, where the node knows it.
    pub const fn number(self) -> Option<u32> {
        self.number
    }

    /// Whether both resources are of the same kind.
    pub fn is_a(self, other: Resource) -> bool {
        ptr::eq(self.kind, other.kind)
    }

    fn order(self) -> (u16, &'static str, usize, Option<u32>) {
        (self.kind.place, self.kind.name, ptr::from_ref(self.kind).addr(), self.number)
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Resource) -> bool {
        self.is_a(*other) && self.number == other.number
    }
}

impl Eq for Resource {}

impl Ord for Resource {
    fn cmp(&self, other: &Resource) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Resource) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind.name, self.number).hash(state);
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "Resource({} {number})", self.name()),
            None => write!(f, "Resource({})", self.name()),
        }
    }
}

/// Declares resources as constants, each with its own [`ResourceKind`](crate::ResourceKind).
///
/// ```
/// use nicety_types::{End, FlowPoint, Pick, Resource, ResourceKind, Tracks};
///
/// nicety_types::resources! {
///     /// The ring of descriptors.
///     pub const RING = ResourceKind {
///         name: "ring",
///         place: 65,
///         tracks: Tracks::One,
///         nests: false,
///         flow: &[FlowPoint { end: End::Source, pick: Pick::First, purposes: &[] }],
///         programs: &[],
///     };
/// }
/// assert!(Resource::LINK < RING);
/// ```
#[macro_export]
macro_rules! resources {
    ($($(#[$doc:meta])* $vis:vis const $name:ident = $kind:expr;)*) => {
        $(
            $(#[$doc])*
            $vis const $name: $crate::Resource = {
                static KIND: $crate::ResourceKind = $kind;
                $crate::Resource::new(&KIND)
            };
        )*
    };
}

/// A kind with one track, without nested uses and without points of a message's flow.
const PLAIN: ResourceKind =
    ResourceKind { name: "", place: 0, tracks: Tracks::One, nests: false, flow: &[], programs: &[] };

impl Resource {
    resources! {
        /// The host's program: its calls, and their durations.
        pub const PROGRAM = ResourceKind { name: "program", place: 10, nests: true, ..PLAIN };
        /// A CPU core of the host.
        pub const HOST_CPU = ResourceKind {
            name: "host CPU",
            place: 20,
            tracks: Tracks::Numbered,
            flow: &[
                FlowPoint { end: End::Source, pick: Pick::First, purposes: &["post"] },
                FlowPoint { end: End::Target, pick: Pick::First, purposes: &["notice"] },
            ],
            ..PLAIN
        };
        /// The host bus, towards the card.
        pub const BUS_TO_CARD = ResourceKind { name: "bus to card", place: 30, ..PLAIN };
        /// The host bus, towards host memory.
        pub const BUS_TO_HOST = ResourceKind { name: "bus to host", place: 40, ..PLAIN };
        /// Transfers of the card from and to host memory, from the request to the last byte. Several may be in flight.
        pub const DMA = ResourceKind {
            name: "DMA",
            place: 50,
            tracks: Tracks::Overlapping,
            flow: &[FlowPoint { end: End::Target, pick: Pick::Last, purposes: &["deposit", "write"] }],
            ..PLAIN
        };
        /// The serialiser of the card's link.
        pub const LINK = ResourceKind {
            name: "link",
            place: 60,
            flow: &[FlowPoint { end: End::Source, pick: Pick::First, purposes: &[] }],
            ..PLAIN
        };
        /// An output port of a switch.
        pub const SWITCH_PORT =
            ResourceKind { name: "switch port", place: 80, tracks: Tracks::Numbered, ..PLAIN };
        /// An output port of a host's router. Port 0 leads to the card, and every other port leads to a link.
        pub const ROUTER_PORT =
            ResourceKind { name: "router port", place: 90, tracks: Tracks::Numbered, ..PLAIN };
    }
}
