//! The packets that links carried, kept for a file.
//!
//! Each direction of a link between two nodes has a [`Tap`] where packets enter it, if the network is
//! [captured](crate::Network::capture). A node's taps share a budget of memory, so that what is kept does not depend on
//! shards; the packets after the first that does not fit are counted.

use crate::faults::{LostPacket, Place};
use crate::transit::Transit;
use crate::{Cause, Channel, Label, Packet, Pause};
use nicety_types::{Duration, MessageId, NodeId, Segment, Time};
use std::cell::{Cell, RefCell};
use std::iter;
use std::rc::Rc;

/// Most bytes of header and payload that are kept of a packet: the longest that tools read.
const LONGEST: u64 = 1 << 18;

/// What became of a packet on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// It does not arrive.
    pub lost: bool,
    /// Why it was dropped, if it was: among the packets that a node has dropped.
    pub dropped: Option<Cause>,
    /// Bits were flipped. Its bytes are the damaged ones, except on a link that checks packets, which has them as they were sent.
    pub damaged: bool,
    /// It was on the link before: the link has sent it again, or the network has duplicated it.
    pub again: bool,
    /// Its delay beyond the link's latency.
    pub late: Duration,
}

impl Fate {
    /// A packet that was dropped.
    const fn of_drop(cause: Cause) -> Fate {
        Fate { lost: false, dropped: Some(cause), damaged: false, again: false, late: Duration::ZERO }
    }
}

/// A packet that a link carried.
#[derive(Clone, Debug)]
pub struct Captured<'c> {
    /// When its first byte went out.
    pub time: Time,
    /// Its route and its name.
    pub label: Label,
    /// Its flow control on this link.
    pub channel: Channel,
    /// What became of it.
    pub fate: Fate,
    /// The header.
    pub header: &'c [u8],
    /// The payload up to its first phantom byte; not more than 256 KiB with the header.
    pub payload: &'c [u8],
    /// Length of the whole payload in bytes.
    pub length: u64,
    /// What it says, if it is no packet but a pause frame, whose header is the frame of IEEE 802.1Qbb.
    pub pause: Option<Pause>,
}

/// The packets that one direction of a link carried, or that a node has dropped.
#[derive(Clone, Debug)]
pub struct CapturedLink {
    /// The node where it begins.
    pub from: Place,
    /// The node where it ends.
    pub to: Place,
    /// Whether these are the packets that the node `from` has dropped, and no link's.
    pub dropped: bool,
    /// The port of the card at one of its ends, or that has dropped them, where the capture tells apart
    /// [the ports of a card](crate::Network::capture).
    pub port: Option<CardPort>,
    /// Packets that were not kept, because the node's budget of memory was used up.
    pub left_out: u64,
    rows: Vec<Row>,
    bytes: Vec<u8>,
}

/// A port of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardPort {
    /// Where the card is.
    pub card: Place,
    /// The port's number.
    pub number: u32,
}

/// The ports of a card of which all are in use: a switch inside of it joins them, and each leads to another host.
pub(crate) struct CardPorts {
    card: Option<NodeId>,
    /// The hosts behind its ports.
    others: Vec<NodeId>,
    /// Hosts of the network, the card's among them.
    hosts: u32,
}

/// The packets that a node drops: those from or to one node, or all others.
pub(crate) type DropTap = (Option<NodeId>, Rc<Tap>);

impl CardPorts {
    /// Of this host's card, or none, in a network of these hosts.
    pub(crate) fn of(card: Option<NodeId>, hosts: impl ExactSizeIterator<Item = NodeId>) -> CardPorts {
        let count = hosts.len() as u32;
        let others = match card {
            None => Vec::new(),
            Some(card) => hosts.filter(|host| *host != card).collect(),
        };
        CardPorts { card, others, hosts: count }
    }

    /// Whether it is the card of this host.
    pub(crate) fn is_at(&self, node: NodeId) -> bool {
        self.card == Some(node)
    }

    /// The port that leads to a host.
    fn to(&self, node: NodeId) -> Option<CardPort> {
        let number = self.others.iter().position(|other| *other == node)? as u32;
        Some(CardPort { card: Place::of(self.card?, self.hosts), number })
    }

    /// The tap of a link that ends at a host, with the port's name where it is that of a port.
    pub(crate) fn name(&self, end: NodeId, tap: Rc<Tap>) -> Rc<Tap> {
        if let Some(port) = self.to(end) {
            tap.is_of(port);
        }
        tap
    }

    /// The taps for what a node drops: one for each port where it is the card, or the switch inside of it, and one for all else.
    pub(crate) fn drops(&self, node: NodeId, left: &Rc<Cell<u64>>) -> Vec<DropTap> {
        let tap = || Tap::of_drops(Place::of(node, self.hosts), left.clone());
        let is_inside = self.is_at(node) || node.0 >= self.hosts;
        let by_port = self.others.iter().filter(|_| is_inside);
        let by_port = by_port.map(|other| (Some(*other), self.name(*other, tap())));
        by_port.chain(iter::once_with(|| (None, tap()))).collect()
    }
}

/// A packet, whose bytes are those of the link from `start` on.
#[derive(Clone, Copy, Debug)]
struct Row {
    time: Time,
    label: Label,
    channel: Channel,
    fate: Fate,
    start: usize,
    header: usize,
    kept: usize,
    length: u64,
    pause: Option<Pause>,
}

impl CapturedLink {
    /// How many packets were kept.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The packets that it has carried, those left out among them.
    pub fn packets(&self) -> u64 {
        self.len() as u64 + self.left_out
    }

    /// Whether the link has carried nothing.
    pub fn is_empty(&self) -> bool {
        self.packets() == 0
    }

    /// When the first byte of a packet went out, by its number.
    ///
    /// # Panics
    /// When there is no such packet.
    pub fn time(&self, number: usize) -> Time {
        self.rows[number].time
    }

    /// A packet, by its number: they are in the order in which they were given to the link.
    ///
    /// # Panics
    /// When there is no such packet.
    pub fn packet(&self, number: usize) -> Captured<'_> {
        let Row { time, label, channel, fate, start, header, kept, length, pause } = self.rows[number];
        let (header, payload) = self.bytes[start..start + header + kept].split_at(header);
        Captured { time, label, channel, fate, header, payload, length, pause }
    }
}

/// Keeps the packets that one direction of a link carries.
pub(crate) struct Tap {
    /// Bytes of memory that the node's taps may still take.
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

    /// The link is that of a port of a card: the switch at one of its ends is inside of that.
    pub(crate) fn is_of(&self, port: CardPort) {
        let link = &mut *self.link.borrow_mut();
        link.port = Some(port);
        for end in [&mut link.from, &mut link.to] {
            if matches!(end, Place::Switch(_)) {
                *end = port.card;
            }
        }
    }

    /// A tap for the packets that a node drops.
    pub(crate) fn of_drops(at: Place, left: Rc<Cell<u64>>) -> Rc<Tap> {
        let tap = Tap::new((at, at), left);
        tap.link.borrow_mut().dropped = true;
        Rc::new(tap)
    }

    /// A packet's first byte goes out at `time`.
    pub(crate) fn keep(&self, packet: &Transit, time: Time, fate: Fate) {
        self.keep_packet(packet.packet(), packet.channel, time, fate);
    }

    /// A packet is dropped.
    pub(crate) fn keep_dropped(&self, packet: &Packet, lost: LostPacket) {
        self.keep_packet(packet, packet.channel, lost.time, Fate::of_drop(lost.cause));
    }

    #[cold]
    fn keep_packet(&self, packet: &Packet, channel: Channel, time: Time, fate: Fate) {
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
            fate,
            start: 0,
            header: header.len(),
            kept,
            length,
            pause: None,
        };
        self.push(row, iter::once(header).chain(real()));
    }

    /// A pause frame's first byte goes out at `time`, from one node of so many hosts to the other.
    #[cold]
    pub(crate) fn keep_pause(&self, pause: Pause, time: Time, fate: Fate) {
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
            fate,
            start: 0,
            header,
            kept: 0,
            length: 0,
            pause: Some(pause),
        };
        self.push(row, iter::once(&frame[..]));
    }

    /// Adds a row, whose bytes are the first of these.
    fn push<'b>(&self, row: Row, parts: impl Iterator<Item = &'b [u8]>) {
        let link = &mut *self.link.borrow_mut();
        let Some(left) = self.left.get().checked_sub((size_of::<Row>() + row.header + row.kept) as u64)
        else {
            // Shorter packets after it would leave gaps that no reader sees.
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

    /// Takes what was kept.
    pub(crate) fn take(&self) -> CapturedLink {
        let link = &mut *self.link.borrow_mut();
        let empty = CapturedLink { rows: Vec::new(), bytes: Vec::new(), left_out: 0, ..*link };
        std::mem::replace(link, empty)
    }
}
