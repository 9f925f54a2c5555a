//! Packets captured on links, to be written to a file.
//!
//! In a [captured](crate::Network::capture) network, each direction of a link between two nodes has a [`Tap`] at its
//! start. The taps of a node share a budget of memory, so the captured packets do not depend on shards. After the first
//! packet that exceeds the budget, packets are only counted.

use crate::faults::{LostPacket, Place};
use crate::transit::Transit;
use crate::{Cause, Channel, Label, Packet, Pause};
use nicety_types::{Duration, MessageId, NodeId, Segment, Time};
use std::cell::{Cell, RefCell};
use std::iter;
use std::rc::Rc;

/// Maximum number of bytes of header and payload that are kept per packet: the largest size that tools read.
const LONGEST: u64 = 1 << 18;

/// The disposition of a packet on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disposition {
    /// Whether the packet does not arrive.
    pub lost: bool,
    /// The cause of the drop, for a packet dropped by a node.
    pub dropped: Option<Cause>,
    /// Whether bits were flipped. The captured bytes are the damaged bytes. On a link that checks packets, the captured
    /// bytes are those that the sender sent.
    pub damaged: bool,
    /// Whether it is a resent or duplicated packet.
    pub again: bool,
    /// Its delay in addition to the link's latency.
    pub late: Duration,
}

impl Disposition {
    /// The disposition of a dropped packet.
    const fn of_drop(cause: Cause) -> Disposition {
        Disposition { lost: false, dropped: Some(cause), damaged: false, again: false, late: Duration::ZERO }
    }
}

/// A captured packet.
#[derive(Clone, Debug)]
pub struct Captured<'c> {
    /// The time at which its first byte left.
    pub time: Time,
    /// Its route and identity.
    pub label: Label,
    /// Flow-control channel of the packet on this link.
    pub channel: Channel,
    /// Its disposition.
    pub disposition: Disposition,
    /// The header.
    pub header: &'c [u8],
    /// The payload up to its first phantom byte; at most 256 KiB with the header.
    pub payload: &'c [u8],
    /// Length of the whole payload in bytes.
    pub length: u64,
    /// The contents of a pause frame, or `None` for a packet. The header of a pause is the frame of IEEE 802.1Qbb.
    pub pause: Option<Pause>,
}

/// The captured packets of one direction of a link, or the packets dropped by a node.
#[derive(Clone, Debug)]
pub struct CapturedLink {
    /// The node at the start of this direction.
    pub from: Place,
    /// The node at the end of this direction.
    pub to: Place,
    /// Whether these are packets dropped by the node `from`, instead of packets of a link.
    pub dropped: bool,
    /// The port of the card at one end of the link, or the port that dropped the packets. Set only if the capture
    /// distinguishes [the ports of a card](crate::Network::capture).
    pub port: Option<CardPort>,
    /// Number of packets that were left out because they exceeded the node's budget of memory.
    pub left_out: u64,
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

/// A port of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardPort {
    /// The card's node.
    pub card: Place,
    /// The port's number.
    pub number: u32,
}

/// The ports of a card that uses all its ports. A switch inside the card joins the ports, and each port leads to
/// another host.
pub(crate) struct CardPorts {
    card: Option<NodeId>,
    /// The host at each port, by port number.
    others: Vec<NodeId>,
    /// Number of hosts of the network, including the card's host.
    hosts: u32,
}

/// A tap for dropped packets. With a node, the tap gets the packets from or to this node; with `None`, all remaining
/// packets.
pub(crate) type DropTap = (Option<NodeId>, Rc<Tap>);

impl CardPorts {
    /// Returns the ports of the card at host `card`, in a network of `hosts`. Without `card`, there are no ports.
    pub(crate) fn of(card: Option<NodeId>, hosts: impl ExactSizeIterator<Item = NodeId>) -> CardPorts {
        let count = hosts.len() as u32;
        let others = match card {
            None => Vec::new(),
            Some(card) => hosts.filter(|host| *host != card).collect(),
        };
        CardPorts { card, others, hosts: count }
    }

    /// Whether the card is at this host.
    pub(crate) fn is_at(&self, node: NodeId) -> bool {
        self.card == Some(node)
    }

    /// Returns the port that leads to a host.
    fn to(&self, node: NodeId) -> Option<CardPort> {
        let number = self.others.iter().position(|other| *other == node)? as u32;
        Some(CardPort { card: Place::of(self.card?, self.hosts), number })
    }

    /// Labels the tap of a link that ends at a host with the port that leads to this host, if there is such a port.
    pub(crate) fn name(&self, end: NodeId, tap: Rc<Tap>) -> Rc<Tap> {
        if let Some(port) = self.to(end) {
            tap.is_of(port);
        }
        tap
    }

    /// Returns the taps for the drops of a node. The card, and the switch inside it, have a tap for each port and a tap
    /// for the remaining packets. Other nodes have one tap.
    pub(crate) fn drops(&self, node: NodeId, left: &Rc<Cell<u64>>) -> Vec<DropTap> {
        let tap = || Tap::of_drops(Place::of(node, self.hosts), left.clone());
        let is_inside = self.is_at(node) || node.0 >= self.hosts;
        let by_port = self.others.iter().filter(|_| is_inside);
        let by_port = by_port.map(|other| (Some(*other), self.name(*other, tap())));
        by_port.chain(iter::once_with(|| (None, tap()))).collect()
    }
}

/// A packet. Its bytes begin at index `start` of the link's bytes.
#[derive(Clone, Copy, Debug)]
struct Row {
    time: Time,
    label: Label,
    channel: Channel,
    disposition: Disposition,
    start: usize,
    header: usize,
    kept: usize,
    length: u64,
    pause: Option<Pause>,
}

impl CapturedLink {
    /// Number of captured packets.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of packets that the link has carried, including packets left out.
    pub fn packets(&self) -> u64 {
        self.len() as u64 + self.left_out
    }

    /// Whether the link has carried no packet.
    pub fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// Returns the time at which the first byte of packet `number` left.
    ///
    /// # Panics
    /// When there is no such packet.
    pub fn time(&self, number: usize) -> Time {
        self.rows[number].time
    }

    /// Returns packet `number`, in the order in which the link received them.
    ///
    /// # Panics
    /// When there is no such packet.
    pub fn packet(&self, number: usize) -> Captured<'_> {
        let Row { time, label, channel, disposition, start, header, kept, length, pause } = self.rows[number];
        let (header, payload) = self.bytes[start..start + header + kept].split_at(header);
        Captured { time, label, channel, disposition, header, payload, length, pause }
    }
}

/// Captures the packets of one direction of a link.
pub(crate) struct Tap {
    /// Bytes of memory left for the taps of the node.
    left: Rc<Cell<u64>>,
    link: RefCell<CapturedLink>,
}

impl Tap {
    pub(crate) fn new((from, to): (Place, Place), left: Rc<Cell<u64>>) -> Tap {
        let link = CapturedLink {
            from,
            to,
            dropped: false,
            port: None,
            left_out: 0,
            rows: Vec::new(),
            bytes: Vec::new(),
        };
        Tap { left, link: RefCell::new(link) }
    }

    /// Assigns the link to a port of a card. The switch at one of the link's ends is inside the card.
    pub(crate) fn is_of(&self, port: CardPort) {
        let link = &mut *self.link.borrow_mut();
        link.port = Some(port);
        for end in [&mut link.from, &mut link.to] {
            if matches!(end, Place::Switch(_)) {
                *end = port.card;
            }
        }
    }

    /// Makes a tap for the drops of a node.
    pub(crate) fn of_drops(at: Place, left: Rc<Cell<u64>>) -> Rc<Tap> {
        let tap = Tap::new((at, at), left);
        tap.link.borrow_mut().dropped = true;
        Rc::new(tap)
    }

    /// Captures a packet that leaves at `time`.
    pub(crate) fn keep(&self, packet: &Transit, time: Time, disposition: Disposition) {
        self.keep_packet(packet.packet(), packet.channel, time, disposition);
    }

    /// Captures a dropped packet.
    pub(crate) fn keep_dropped(&self, packet: &Packet, lost: LostPacket) {
        self.keep_packet(packet, packet.channel, lost.time, Disposition::of_drop(lost.cause));
    }

    #[cold]
    fn keep_packet(&self, packet: &Packet, channel: Channel, time: Time, disposition: Disposition) {
        let header = packet.header.as_slice();
        let most = LONGEST - header.len() as u64;
        let real = || {
            packet.payload.segments().map_while(|segment| match segment {
                Segment::Real(bytes) => Some(&**bytes),
                Segment::Phantom(_) => None,
            })
        };
        let kept = real().map(|bytes| bytes.len() as u64).sum::<u64>().min(most) as usize;
        let length = packet.payload.len();
        let row = Row {
            time,
            label: packet.label,
            channel,
            disposition,
            start: 0,
            header: header.len(),
            kept,
            length,
            pause: None,
        };
        self.push(row, iter::once(header).chain(real()));
    }

    /// Captures a pause frame that leaves at `time`.
    #[cold]
    pub(crate) fn keep_pause(&self, pause: Pause, time: Time, disposition: Disposition) {
        let frame = pause.frame(self.link.borrow().from);
        let label = Label {
            message: MessageId { source: NodeId(0), sequence: 0 },
            destination: NodeId(0),
            offset: 0,
        };
        let header = frame.len();
        let row = Row {
            time,
            label,
            channel: Channel::Control,
            disposition,
            start: 0,
            header,
            kept: 0,
            length: 0,
            pause: Some(pause),
        };
        self.push(row, iter::once(&frame[..]));
    }

    /// Adds a row with the bytes of `parts`, up to the kept length.
    fn push<'b>(&self, row: Row, parts: impl Iterator<Item = &'b [u8]>) {
        let link = &mut *self.link.borrow_mut();
        let Some(left) = self.left.get().checked_sub((size_of::<Row>() + row.header + row.kept) as u64)
        else {
            // The capture ends here. Otherwise shorter packets that follow would leave an invisible gap.
            self.left.set(0);
            link.left_out += 1;
            return;
        };
        self.left.set(left);
        let start = link.bytes.len();
        let end = start + row.header + row.kept;
        for bytes in parts {
            link.bytes.extend_from_slice(&bytes[..bytes.len().min(end - link.bytes.len())]);
        }
        link.rows.push(Row { start, ..row });
    }

    /// Takes the captured packets.
    pub(crate) fn take(&self) -> CapturedLink {
        let link = &mut *self.link.borrow_mut();
        let empty = CapturedLink { rows: Vec::new(), bytes: Vec::new(), left_out: 0, ..*link };
        std::mem::replace(link, empty)
    }
}
