//! Networks without credits, as Ethernet has them: switches that drop what they have no room for, or that pause the senders.
//!
//! - Here: flow control as it is chosen, and what all parts of such a network know.
//! - `memory.rs`: a switch's memory: which packets it admits, and when it pauses who sends them.
//! - `pause.rs`: both ends of a pause (IEEE 802.1Qbb, in one class).
//! - `switch.rs`: the switch, with a queue before each output.
//! - `station.rs`: a card's end of its link.
//! - `deadlock.rs`: ports that wait for each other in a circle.
//!
//! A packet is a frame of Ethernet at least: it takes the wire, and room in a buffer, for 84 bytes or more.

mod deadlock;
mod memory;
mod pause;
mod station;
mod switch;

pub use deadlock::PausedRing;
pub(crate) use deadlock::{Wait, ring};
pub use pause::Pause;
pub(crate) use station::Station;
pub(crate) use switch::Inside;

use crate::capture::DropTap;
use crate::faults::{Losses, Place};
use crate::protocol::Framing;
use crate::{LinkSpec, LostPacket, Packet, SwitchSpec, TopologyError};
use nicety_types::{Duration, NodeId};
use std::fmt;

/// The least bytes of a packet on the wire: the shortest frame of IEEE 802.3, 64 bytes, its preamble and start delimiter, 8,
/// and the gap between packets, 12. A pause frame has as many.
pub const LEAST: u64 = 84;

/// What a network does so that its buffers do not overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowControl {
    /// A packet is sent only with a credit for a place in the buffer behind the link, so none is dropped.
    #[default]
    Credits,
    /// Nothing: a packet that finds no room is dropped.
    None(Buffering),
    /// A buffer that fills pauses who sends to it (IEEE 802.1Qbb), in one class.
    Pfc(Buffering, PauseSpec),
}

impl FlowControl {
    /// The name, as it is written on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FlowControl::Credits => "credits",
            FlowControl::None(_) => "none",
            FlowControl::Pfc(..) => "pfc",
        }
    }
}

/// The memory of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes, of each port or of the whole switch; room for as many of the longest packets as its specification has places if
    /// none is named.
    pub size: Option<u64>,
    /// What shares it.
    pub per: Per,
    /// Of a shared memory: the limit of a port.
    pub alpha: Alpha,
}

/// What shares a switch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Each port has its own.
    #[default]
    Port,
    /// All ports share one.
    Shared,
}

/// The limit of a port in a shared memory, as a multiple of what is free of it (Choudhury and Hahne, IEEE/ACM
/// Transactions on Networking 6(2), 1998).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpha {
    numerator: u64,
    denominator: u64,
}

impl Default for Alpha {
    fn default() -> Alpha {
        Alpha { numerator: 1, denominator: 1 }
    }
}

impl Alpha {
    /// This fraction.
    ///
    /// # Panics
    /// When it is zero, or its denominator is, or one of them is 2^32 or more.
    pub fn new(numerator: u64, denominator: u64) -> Alpha {
        assert!((1..1 << 32).contains(&numerator) && (1..1 << 32).contains(&denominator), "no alpha");
        Alpha { numerator, denominator }
    }

    /// The largest use below which a port may take more, where so many bytes are free.
    fn allows(self, used: u64, free: u64) -> bool {
        u128::from(used) * u128::from(self.denominator) < u128::from(free) * u128::from(self.numerator)
    }
}

/// When pauses begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseSpec {
    /// Bytes that came by a port and are in the switch from which on its sender is paused: all but the headroom if left out.
    /// Only where each port has memory of its own.
    pub xoff: Option<u64>,
    /// Bytes down to which the sender goes on: two of the longest packets below `xoff` if left out.
    pub xon: Option<u64>,
    /// Memory for what still comes by a port after its pause: as much as can come if left out.
    pub headroom: Option<u64>,
    /// The length of a pause in quanta of 512 bit times; it is repeated in half of that as long as it is meant.
    pub quanta: u16,
}

impl Default for PauseSpec {
    fn default() -> PauseSpec {
        PauseSpec { xoff: None, xon: None, headroom: None, quanta: u16::MAX }
    }
}

/// What all parts of a network without credits know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many hosts there are; their nodes come first.
    pub(crate) hosts: u32,
    /// Bytes of the longest packet on the wire.
    largest: u64,
    /// Of a port, or of a switch.
    size: u64,
    per: Per,
    alpha: Alpha,
    pause: Option<Pausing>,
}

/// Pauses of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pausing {
    /// Where each port has memory of its own.
    xoff: u64,
    xon: u64,
    headroom: u64,
    /// What can come by a port after its pause.
    needed: u64,
    quanta: u16,
}

impl FlowControl {
    /// What it comes to in a network of so many hosts whose packets carry at most `payload` bytes, with these links, and switches
    /// with at most so many of them; none with credits.
    ///
    /// # Errors
    /// When memory or thresholds cannot be, with what to write instead.
    pub(crate) fn plan<'l>(
        self,
        (hosts, payload): (u32, u64),
        links: impl Iterator<Item = &'l LinkSpec> + Clone,
        switch: &SwitchSpec,
        ports: Option<u64>,
    ) -> Result<Option<Plan>, TopologyError> {
        let (buffering, pausing) = match self {
            FlowControl::Credits => return Ok(None),
            FlowControl::None(buffering) => (buffering, None),
            FlowControl::Pfc(buffering, pausing) => (buffering, Some(pausing)),
        };
        let wrong = |why: String| Err(TopologyError::new(format!("flow control {}: {why}", self.name())));
        let Some(ports) = ports else {
            let why = format!("flow control {}: this topology has no switches", self.name());
            return Err(TopologyError::new(why).topology("star, fat-tree or ring"));
        };
        let wire = |link: &LinkSpec| Framing::of(link).bytes(payload).max(LEAST);
        let largest = links.clone().map(wire).max().unwrap_or(LEAST);
        let (size, of) = match buffering.per {
            Per::Port => (u64::from(switch.buffer) * largest, "each port"),
            Per::Shared => (u64::from(switch.buffer) * largest * u64::from(switch.ports), "the switch"),
        };
        let size = buffering.size.unwrap_or(size);
        if size < largest {
            return wrong(format!(
                "a buffer of {size} B for {of} has no room for a packet of {largest} B; write buffer={largest} or more"
            ));
        }
        let slowest = links.clone().map(|link| link.gap.cover(largest)).max().unwrap_or(Duration::ZERO);
        let after = |link: &LinkSpec| after_pause(link, largest, slowest);
        let needed = links.map(after).max().unwrap_or(0);
        let pause = match pausing {
            None => None,
            Some(spec) => match spec.within(size, largest, needed, (buffering.per, ports)) {
                Ok(pause) => Some(pause),
                Err(why) => return wrong(why),
            },
        };
        Ok(Some(Plan { hosts, largest, size, per: buffering.per, alpha: buffering.alpha, pause }))
    }
}

/// The most bytes that come by a link from the head of the packet on that decides to pause its sender: until the pause frame
/// is there, which may have to wait for a packet that goes the other way, and a packet that has just begun then.
fn after_pause(link: &LinkSpec, largest: u64, slowest: Duration) -> u64 {
    let time = link.latency * 2 + slowest + link.gap.cover(LEAST);
    link.gap.bytes_in(time).saturating_add(largest)
}

impl PauseSpec {
    /// The thresholds in a memory of so many bytes.
    fn within(
        self,
        size: u64,
        largest: u64,
        needed: u64,
        (per, ports): (Per, u64),
    ) -> Result<Pausing, String> {
        let PauseSpec { xoff, xon, headroom, quanta } = self;
        let of_port = headroom.unwrap_or(needed);
        let most = match per {
            Per::Port => size.saturating_sub(of_port),
            Per::Shared => size.saturating_sub(of_port.saturating_mul(ports)),
        };
        if most < largest {
            let all = match per {
                Per::Port => of_port.saturating_add(largest),
                Per::Shared => of_port.saturating_mul(ports).saturating_add(largest),
            };
            let of = if per == Per::Port { "" } else { &format!(" for each of {ports} ports") };
            return Err(format!(
                "a buffer of {size} B has no room for a packet of {largest} B beside a headroom of {of_port} B{of}, what \
                 comes until a sender stops; write buffer={all} or more, or a smaller headroom to see what is lost"
            ));
        }
        if per == Per::Shared && (xoff.is_some() || xon.is_some()) {
            return Err(
                "a shared buffer has no fixed thresholds; leave out xoff and xon, and write alpha".into()
            );
        }
        let xoff = match xoff {
            None => most,
            Some(xoff) if xoff > size => {
                return Err(format!(
                    "xoff={xoff} is above the buffer of {size} B; write xoff={most} or less"
                ));
            }
            Some(xoff) if xoff > most => {
                return Err(format!(
                    "xoff={xoff} leaves {} B of the buffer for the headroom, and that is {of_port} B; write xoff={most} or \
                     less, or a smaller headroom to see what is lost",
                    size - xoff
                ));
            }
            Some(0) => return Err("xoff=0 never lets a packet come; write xoff=1 or more".into()),
            Some(xoff) => xoff,
        };
        let xon = match xon {
            None => xoff.saturating_sub(2 * largest),
            Some(xon) if xon >= xoff => {
                return Err(format!("xon={xon} is not below xoff, {xoff}; write xon={} or less", xoff - 1));
            }
            Some(xon) => xon,
        };
        Ok(Pausing { xoff, xon, headroom: of_port, needed, quanta })
    }
}

/// The use of a port of a network without credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatistics {
    /// The switch or host.
    pub at: Place,
    /// The number of the port there.
    pub port: u32,
    /// The node at the far end of its link.
    pub peer: Place,
    /// Why packets are dropped here, if any are.
    pub reason: Drops,
    /// Packets that were dropped: before this port where a queue is full, and else having come by it.
    pub dropped_packets: u64,
    /// Their bytes on the wire.
    pub dropped_bytes: u64,
    /// Most bytes at once in the queue before the port; in a network with pauses, of what came by it.
    pub peak_bytes: u64,
    /// Pause frames that were sent by this port, among them those that end a pause.
    pub pauses_sent: u64,
    /// Those that came.
    pub pauses_received: u64,
    /// How long the port was not allowed to send.
    pub paused: Duration,
}

/// Why a port drops packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// The queue before it is full, or has its share of a shared memory.
    Queue,
    /// No headroom is left of what may come by it.
    Headroom,
    /// The packet buffer of the card is full.
    Card,
}

impl Drops {
    /// A text for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Drops::Queue => "queue full",
            Drops::Headroom => "no headroom",
            Drops::Card => "packet buffer full",
        }
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    dropped_packets: u64,
    dropped_bytes: u64,
    pauses_sent: u64,
}

/// The packets that a node has dropped.
#[derive(Default)]
pub(crate) struct Dropped {
    losses: Losses,
    /// Keep them for a capture, the first that a packet is for.
    taps: Vec<DropTap>,
}

impl Dropped {
    /// A packet is dropped.
    fn note(&mut self, packet: &Packet, lost: LostPacket) {
        let label = &packet.label;
        let is_of = |of: Option<NodeId>| {
            of.is_none_or(|node| [label.message.source, label.destination].contains(&node))
        };
        if let Some((_, tap)) = self.taps.iter().find(|(of, _)| is_of(*of)) {
            tap.keep_dropped(packet, lost);
        }
        self.losses.note(lost, packet);
    }
}
