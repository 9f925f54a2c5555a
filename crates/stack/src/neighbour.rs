//! Who is where on the link: addresses learnt by ARP and NDP, and questions that are open.

use crate::frame::{ARP, ICMPV6, IPV6};
use crate::link::{BROADCAST, Link, group_mac, solicited};
use crate::stack::Source;
use nicety_types::{Duration, Time};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Icmpv6Packet, Icmpv6Repr, IpProtocol, Ipv6Packet,
    Ipv6Repr, NdiscNeighborFlags, NdiscRepr, RawHardwareAddress,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that are remembered, as Linux's `gc_thresh3`; the one learnt first is forgotten first.
const MOST: usize = 1024;
/// How long an answer is waited for, and how often it is asked for (RFC 4861: RETRANS_TIMER, MAX_MULTICAST_SOLICIT).
const WAIT: Duration = Duration::from_us(1_000_000);
const TRIES: u32 = 3;

#[derive(Debug)]
struct Question {
    tries: u32,
    again: Time,
    waiting: Vec<Source>,
}

/// What came of looking a neighbour up.
pub(crate) enum Lookup {
    Known([u8; 6]),
    /// A question is open, and the source waits; `ask` says to send it now.
    Waiting {
        ask: bool,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<IpAddr, [u8; 6]>,
    order: VecDeque<IpAddr>,
    open: BTreeMap<IpAddr, Question>,
    /// Counts changes, so that what was looked up before can be used as long as there are none.
    pub version: u64,
}

impl Neighbours {
    /// Looks an address up for a source, which is told when it is known or cannot be.
    pub fn look_up(&mut self, now: Time, address: IpAddr, source: Source) -> Lookup {
        if let Some(&mac) = self.known.get(&address) {
            return Lookup::Known(mac);
        }
        let question = self.open.get_mut(&address);
        let ask = question.is_none();
        match question {
            Some(question) if question.waiting.contains(&source) => {}
            Some(question) => question.waiting.push(source),
            None => {
                let question = Question { tries: 1, again: now + WAIT, waiting: vec![source] };
                self.open.insert(address, question);
            }
        }
        Lookup::Waiting { ask }
    }

    pub fn get(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.known.get(&address).copied()
    }

    /// Learns where an address is, and says who has waited for it. What nobody has asked for (`asked` is false) is
    /// learnt only where an older entry changes by it.
    pub fn learn(&mut self, address: IpAddr, mac: [u8; 6], asked: bool) -> Vec<Source> {
        if mac[0] & 1 != 0
            || !(asked || self.known.contains_key(&address) || self.open.contains_key(&address))
        {
            return Vec::new();
        }
        match self.known.insert(address, mac) {
            None => {
                self.order.push_back(address);
                if self.order.len() > MOST
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.known.remove(&oldest);
                }
                self.version += 1;
            }
            Some(before) if before != mac => self.version += 1,
            Some(_) => {}
        }
        self.open.remove(&address).map_or_else(Vec::new, |question| question.waiting)
    }

    pub fn next_timer(&self) -> Option<Time> {
        self.open.values().map(|question| question.again).min()
    }

    /// Questions to ask again, and those who wait for what nobody has answered.
    pub fn on_timer(&mut self, now: Time) -> (Vec<IpAddr>, Vec<Source>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        self.open.retain(|&address, question| {
            if question.again > now {
                return true;
            }
            if question.tries == TRIES {
                lost.append(&mut question.waiting);
                return false;
            }
            question.tries += 1;
            question.again = now + WAIT;
            again.push(address);
            true
        });
        (again, lost)
    }
}

/// Writes an ARP packet.
pub(crate) fn arp(
    link: Link,
    operation: ArpOperation,
    own: Ipv4Addr,
    to: ([u8; 6], Ipv4Addr),
    out: &mut Vec<u8>,
) {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(link.mac),
        source_protocol_addr: own,
        // Whoever asks does not know it.
        target_hardware_addr: EthernetAddress(if operation == ArpOperation::Reply { to.0 } else { [0; 6] }),
        target_protocol_addr: to.1,
    };
    link.begin(out, repr.buffer_len());
    link.address(out, to.0, ARP);
    repr.emit(&mut ArpPacket::new_unchecked(&mut out[link.room()..]));
}

/// Writes the question where an address is.
pub(crate) fn ask(link: Link, own: IpAddr, address: IpAddr, out: &mut Vec<u8>) {
    match (own, address) {
        (IpAddr::V4(own), IpAddr::V4(address)) => {
            arp(link, ArpOperation::Request, own, (BROADCAST, address), out)
        }
        (IpAddr::V6(own), IpAddr::V6(address)) => {
            let lladdr = Some(RawHardwareAddress::from_bytes(&link.mac));
            let repr = NdiscRepr::NeighborSolicit { target_addr: address, lladdr };
            let group = solicited(address);
            ndisc(link, own, (group_mac(group), group), repr, out);
        }
        _ => unreachable!("addresses of one family"),
    }
}

/// Writes the answer to a neighbour solicitation.
pub(crate) fn advertise(link: Link, own: Ipv6Addr, to: ([u8; 6], Ipv6Addr), out: &mut Vec<u8>) {
    let lladdr = Some(RawHardwareAddress::from_bytes(&link.mac));
    let flags = NdiscNeighborFlags::SOLICITED | NdiscNeighborFlags::OVERRIDE;
    ndisc(link, own, to, NdiscRepr::NeighborAdvert { flags, target_addr: own, lladdr }, out);
}

fn ndisc(link: Link, own: Ipv6Addr, to: ([u8; 6], Ipv6Addr), repr: NdiscRepr, out: &mut Vec<u8>) {
    let icmp = Icmpv6Repr::Ndisc(repr);
    let ip = Ipv6Repr {
        src_addr: own,
        dst_addr: to.1,
        next_header: IpProtocol::from(ICMPV6),
        payload_len: icmp.buffer_len(),
        hop_limit: 255,
    };
    link.begin(out, ip.buffer_len() + icmp.buffer_len());
    link.address(out, to.0, IPV6);
    let mut packet = Ipv6Packet::new_unchecked(&mut out[link.room()..]);
    ip.emit(&mut packet);
    let mut body = Icmpv6Packet::new_unchecked(packet.payload_mut());
    icmp.emit(&own, &to.1, &mut body, &ChecksumCapabilities::default());
}
