//! Networks without credits, such as Ethernet. A switch drops a packet without room, or pauses the senders of packets.
//!
//! - This file: the choice of flow control, and the plan that all parts of such a network share.
//! - `memory.rs`: a switch's memory: admission of packets and pauses.
//! - `pause.rs`: the sender and the receiver of a pause (IEEE 802.1Qbb, in one class).
//! - `switch.rs`: the switch, with a queue before each output.
//! - `station.rs`: a card's end of its link.
//! - `deadlock.rs`: ports that wait for each other in a cycle.
//!
//! Each packet counts as at least the shortest Ethernet frame: it takes 84 bytes or more on the wire and in buffers.

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

/// The minimum size of a packet on the wire, and the size of a pause frame, in bytes. It consists of the shortest frame
/// of IEEE 802.3 (64), the preamble and start delimiter (8), and the gap between packets (12).
pub const LEAST: u64 = 84;

/// The method that handles full buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowControl {
    /// Credits: a packet is sent only with a credit for a slot in the buffer at the far end, so no packet is dropped.
    #[default]
    Credits,
    /// None: a packet without room is dropped.
    None(Buffering),
    /// Pauses: before a buffer is full, its node pauses the sender (IEEE 802.1Qbb), in one class.
    Pfc(Buffering, PauseSpec),
}

impl FlowControl {
    /// The name on the command line.
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
    /// Size in bytes, per port or for the whole switch. The default is enough for one packet of maximum size per slot
    /// of the switch's specification.
    pub size: Option<u64>,
    /// Whether each port has its own memory, or all ports share one.
    pub per: Per,
    /// The limit of a port's share in a shared memory.
    pub alpha: Alpha,
}

/// The division of a switch's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Per {
    /// Each port has its own memory.
    #[default]
    Port,
    /// All ports share one memory.
    Shared,
}

/// The limit of a port's occupancy in a shared memory, as a multiple of the free memory. Source: Choudhury and Hahne,
/// IEEE/ACM Transactions on Networking 6(2), 1998.
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
    /// Makes the fraction `numerator / denominator`.
    ///
    /// # Panics
    /// When numerator or denominator is zero, or 2^32 or more.
    pub fn new(numerator: u64, denominator: u64) -> Alpha {
        assert!((1..1 << 32).contains(&numerator) && (1..1 << 32).contains(&denominator), "no alpha");
        Alpha { numerator, denominator }
    }

    /// Whether a port that uses `used` bytes may take more, with `free` bytes free.
    fn allows(self, used: u64, free: u64) -> bool {
        u128::from(used) * u128::from(self.denominator) < u128::from(free) * u128::from(self.numerator)
    }
}

/// The thresholds and the duration of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseSpec {
    /// Occupancy of an input in bytes at which its sender is paused. The default is the input's memory without the
    /// headroom. Only for memory per port.
    pub xoff: Option<u64>,
    /// Occupancy in bytes at which the sender resumes. The default is `xoff` minus two packets of maximum size.
    pub xon: Option<u64>,
    /// Memory in bytes for packets that arrive after the pause was sent. The default is the maximum number of such
    /// bytes.
    pub headroom: Option<u64>,
    /// The duration of a pause in quanta of 512 bit times. A pause that goes on is repeated after half of this
    /// duration.
    pub quanta: u16,
}

impl Default for PauseSpec {
    fn default() -> PauseSpec {
        PauseSpec { xoff: None, xon: None, headroom: None, quanta: u16::MAX }
    }
}

/// The plan that all parts of a network without credits share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Number of hosts. Nodes with smaller numbers are hosts, and all other nodes are switches.
    pub(crate) hosts: u32,
    /// Maximum size of a packet on the wire, in bytes.
    largest: u64,
    /// Memory per port or per switch, in bytes.
    size: u64,
    per: Per,
    alpha: Alpha,
    pause: Option<Pausing>,
}

/// The pauses of a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pausing {
    /// The pause threshold in bytes, for memory per port.
    xoff: u64,
    xon: u64,
    headroom: u64,
    /// Maximum number of bytes that can arrive at a port after it sent a pause.
    needed: u64,
    quanta: u16,
}

impl FlowControl {
    /// Returns the plan for a network with these links, and switches of up to `ports` links. It has `hosts` hosts, and
    /// its packets carry at most `payload` bytes. Returns `None` with credits.
    ///
    /// # Errors
    /// When memory or thresholds are impossible, with a correction.
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

/// Returns the maximum number of bytes that can arrive over a link after the head of the packet that triggers a pause.
/// The pause frame may wait for one packet in its own direction before it crosses the link. The sender may have begun a
/// packet just before the pause frame arrives.
fn after_pause(link: &LinkSpec, largest: u64, slowest: Duration) -> u64 {
    let time = link.latency * 2 + slowest + link.gap.cover(LEAST);
    link.gap.bytes_in(time).saturating_add(largest)
}

impl PauseSpec {
    /// Returns the thresholds for a memory of `size` bytes.
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
                "a buffer of {size} B has no room for a packet of {largest} B in addition to a headroom of \
                 {of_port} B{of}: it holds the bytes that arrive until a sender stops; write buffer={all} or more, or a \
                 smaller headroom to see what is lost"
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
                    "xoff={xoff} leaves {} B of the buffer for the headroom, but the headroom is {of_port} \
                     B; write xoff={most} or \
                     less, or a smaller headroom to see what is lost",
                    size - xoff
                ));
            }
            Some(0) => return Err("xoff=0 admits no packet; write xoff=1 or more".into()),
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

/// The counters of a port of a network without credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatistics {
    /// The switch or host with the port.
    pub at: Place,
    /// The port's number at this switch or host.
    pub port: u32,
    /// The node at the far end of the port's link.
    pub peer: Place,
    /// The reason for which this port drops packets.
    pub reason: Drops,
    /// Number of dropped packets. For [`Drops::Queue`], the packets were to leave by this port. Otherwise they arrived
    /// at this port.
    pub dropped_packets: u64,
    /// Size of the dropped packets on the wire, in bytes.
    pub dropped_bytes: u64,
    /// Peak occupancy in bytes of the queue before the port. With pauses, the peak counts the packets that arrived at
    /// the port.
    pub peak_bytes: u64,
    /// Number of pause frames sent by this port, including frames that end a pause.
    pub pauses_sent: u64,
    /// Number of pause frames received.
    pub pauses_received: u64,
    /// Total time for which the port was paused.
    pub paused: Duration,
}

/// The reason for which a port drops packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drops {
    /// The queue before the port is full, or has used up its share of a shared memory.
    Queue,
    /// The headroom for arriving packets is used up.
    Headroom,
    /// The card's packet buffer is full.
    Card,
}

impl Drops {
    /// The text in reports.
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

/// The drop counters of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    dropped_packets: u64,
    dropped_bytes: u64,
    pauses_sent: u64,
}

/// The packets dropped by a node.
#[derive(Default)]
pub(crate) struct Dropped {
    losses: Losses,
    /// Taps of a capture. The first tap that matches the packet by its node captures the packet.
    taps: Vec<DropTap>,
}

impl Dropped {
    /// Records a dropped packet.
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
