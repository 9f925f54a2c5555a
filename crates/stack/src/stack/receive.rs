//! The path of a received frame: link, network, transport, socket.

use super::names::same_family;
use super::{Arrival, ChecksumStatus, ConnectionId, Drop, Source, Stack};
use crate::checksum::verify;
use crate::connection::Connection;
use crate::discovery::{Message, answer, is_ndp, read_arp, read_ndp};
use crate::error::Error;
use crate::frame::{
    ACK, ARP, FIN, ICMP, ICMPV6, IPV4, IPV6, IpPacket, Parsed, RST, SYN, TCP, TcpHeader, UDP,
};
use crate::link::{BROADCAST, group_mac, solicited};
use crate::spec::unicast;
use crate::tcp::{Tcb, TcpOptions};
use nicety_types::Time;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const ECHO_V4: u8 = 8;
const ECHO_V6: u8 = 128;

impl Arrival {
    pub(super) fn of(source: Source) -> Arrival {
        Arrival { source, payload: 0, readable: 0, acknowledged: 0, dropped: None }
    }
}

impl Stack {
    /// Handles a frame from the card, without its frame check sequence. `checksum` says whether the card has verified
    /// the checksums in the frame.
    ///
    /// Any bytes are valid input: an unusable frame is dropped and counted.
    pub fn receive(&mut self, now: Time, frame: &[u8], checksum: ChecksumStatus) -> Arrival {
        self.counters.received += 1;
        let arrival = self
            .arrive(now, frame, checksum)
            .unwrap_or_else(|why| Arrival { dropped: Some(why), ..Arrival::of(Source::Host) });
        if let Some(why) = arrival.dropped {
            self.counters.dropped[why as usize] += 1;
        }
        arrival
    }

    fn arrive(&mut self, now: Time, frame: &[u8], checksum: ChecksumStatus) -> Result<Arrival, Drop> {
        let parsed = Parsed::read(frame).map_err(|_| Drop::Malformed)?;
        if !self.is_for_us(parsed.macs.0) {
            return Err(Drop::NotForUs);
        }
        if !self.link.same_network(&parsed) {
            return Err(Drop::Vlan);
        }
        let Some(ip) = &parsed.ip else {
            return match parsed.ethertype {
                ARP => self.receive_arp(&frame[parsed.l3..]),
                IPV4 | IPV6 => Err(Drop::Malformed),
                _ => Err(Drop::Protocol),
            };
        };
        let group = matches!(ip.destination, IpAddr::V6(a) if self.is_own_group(a));
        if self.own(ip.destination) != Some(ip.destination) && !(group && ip.protocol == ICMPV6) {
            return Err(Drop::NotForUs);
        }
        if !unicast(ip.source) || self.own(ip.source) == Some(ip.source) {
            return Err(Drop::Malformed);
        }
        if ip.fragment {
            return Err(Drop::Fragment);
        }
        if checksum == ChecksumStatus::Unknown && !verify(frame, ip) {
            return Err(Drop::Checksum);
        }
        let from = parsed.macs.1;
        match ip.protocol {
            TCP => self.receive_segment(now, frame, ip, from),
            UDP => self.receive_datagram(frame, ip, from),
            ICMP if ip.source.is_ipv4() && frame[ip.payload.clone()].first() == Some(&ECHO_V4) => {
                Ok(self.echo(frame, ip, from))
            }
            ICMPV6 if ip.source.is_ipv6() => self.receive_icmp_v6(frame, ip, from),
            _ => Err(Drop::Protocol),
        }
    }

    fn is_for_us(&self, mac: [u8; 6]) -> bool {
        let groups =
            || [self.own_group(), Some(Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]))];
        mac == self.link.mac
            || mac == BROADCAST
            || self.spec.ipv6.is_some() && groups().into_iter().flatten().any(|group| group_mac(group) == mac)
    }

    fn own_group(&self) -> Option<Ipv6Addr> {
        self.spec.ipv6.map(|n| solicited(n.address))
    }

    fn is_own_group(&self, address: Ipv6Addr) -> bool {
        self.own_group() == Some(address)
    }

    fn receive_arp(&mut self, packet: &[u8]) -> Result<Arrival, Drop> {
        let message = read_arp(packet).ok_or(Drop::Malformed)?;
        let own = self.spec.ipv4.ok_or(Drop::Protocol)?.address;
        if !unicast(message.from.into()) || message.from == own {
            return Err(Drop::Malformed);
        }
        let to_us = message.target == own;
        // RFC 826: a station that requests this host's link address will send packets to this host, so its own address
        // is learnt.
        let asked = to_us && message.is_question;
        let mac = message.mac.unwrap_or_default();
        self.learn(message.from.into(), mac, asked);
        if asked {
            self.control(answer(self.link, own.into(), mac, message.from.into()));
        }
        if to_us { Ok(Arrival::of(Source::Host)) } else { Err(Drop::NotForUs) }
    }

    fn learn(&mut self, address: IpAddr, mac: [u8; 6], asked: bool) {
        let waiting = self.neighbours.learn(address, mac, asked);
        self.resolved(waiting);
    }

    fn receive_icmp_v6(&mut self, frame: &[u8], ip: &IpPacket, from: [u8; 6]) -> Result<Arrival, Drop> {
        let body = &frame[ip.payload.clone()];
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (ip.source, ip.destination) else {
            return Err(Drop::Malformed);
        };
        match body.first() {
            Some(&ECHO_V6) if !destination.is_multicast() => Ok(self.echo(frame, ip, from)),
            Some(&kind) if is_ndp(kind) => {
                // RFC 4861, 7.1: a hop limit below 255 shows that a router forwarded the packet, so the sender is not
                // on this link.
                if frame[ip.packet.start + 7] != 255 {
                    return Err(Drop::Malformed);
                }
                self.receive_ndp(read_ndp(source, body).ok_or(Drop::Malformed)?, from)
            }
            _ => Err(Drop::Protocol),
        }
    }

    fn receive_ndp(&mut self, message: Message<Ipv6Addr>, from: [u8; 6]) -> Result<Arrival, Drop> {
        let own = self.spec.ipv6.ok_or(Drop::Protocol)?.address;
        let mac = message.mac.unwrap_or(from);
        if !message.is_question {
            self.learn(message.target.into(), mac, false);
        } else if message.target == own {
            self.learn(message.from.into(), mac, true);
            self.control(answer(self.link, own.into(), mac, message.from.into()));
        } else {
            return Err(Drop::NotForUs);
        }
        Ok(Arrival::of(Source::Host))
    }

    fn receive_segment(
        &mut self,
        now: Time,
        frame: &[u8],
        ip: &IpPacket,
        from: [u8; 6],
    ) -> Result<Arrival, Drop> {
        let segment = &frame[ip.payload.clone()];
        let tcp = TcpHeader::read(segment).map_err(|_| Drop::Malformed)?;
        let options = TcpOptions::read(&segment[20..tcp.length]);
        let payload = &segment[tcp.length..];
        if tcp.ports.0 == 0 || tcp.ports.1 == 0 {
            return Err(Drop::Malformed);
        }
        let flow = (tcp.ports.1, SocketAddr::new(ip.source, tcp.ports.0));
        let mut id = self.flows.get(&flow).copied();
        if let Some(old) = id
            && let Some(connection) = self.connections.get(old.0)
            && connection.is_renewed_by(&tcp)
            && self.ports.contains_key(&flow.0)
        {
            if connection.held {
                self.detach(flow, old)
            } else {
                self.remove(old)
            }
            id = None;
        }
        let begins = tcp.flags & (SYN | ACK | RST | FIN) == SYN;
        let Some(id) = id else {
            if begins && self.ports.contains_key(&flow.0) {
                let id = self.begin(now, flow, ip, &tcp, &options)?;
                return Ok(Arrival { payload: payload.len(), ..Arrival::of(Source::Connection(id)) });
            }
            self.refuse(&tcp, ip, payload.len(), from);
            let arrival = Arrival::of(Source::Host);
            return Ok(Arrival { payload: payload.len(), dropped: Some(Drop::NoPort), ..arrival });
        };
        let (arrival, refused) = self.deliver(now, id, &tcp, &options, payload);
        if refused {
            self.refuse(&tcp, ip, payload.len(), from);
        }
        Ok(arrival)
    }

    /// Creates a connection for a SYN to a listener.
    fn begin(
        &mut self,
        now: Time,
        flow: (u16, SocketAddr),
        ip: &IpPacket,
        tcp: &TcpHeader,
        options: &TcpOptions,
    ) -> Result<ConnectionId, Drop> {
        let listener = self.ports[&flow.0];
        let Some(entry) = self.listeners.get(listener.0) else { return Err(Drop::NoPort) };
        if entry.begun + entry.queue.len() >= entry.backlog {
            return Err(Drop::Backlog);
        }
        let chosen = entry.options;
        let hop = self.next_hop(flow.1.ip()).map_err(|_| Drop::Malformed)?;
        let setup = self.setup(&chosen, ip.source).map_err(|_| Drop::Backlog)?;
        let local = SocketAddr::new(ip.destination, flow.0);
        debug_assert!(same_family(local, flow.1));
        let buffers = setup.send + setup.receive;
        let tcb = Tcb::accept(now, setup, self.answering_number(), tcp, options);
        let mut connection = Connection::new(local, flow.1, hop, tcb, buffers);
        (connection.listener, connection.is_begun) = (Some(listener), true);
        let id = self.insert(connection).ok_or(Drop::Backlog)?;
        if let Some(entry) = self.listeners.get_mut(listener.0) {
            entry.begun += 1;
        }
        self.settle(now, id, None);
        Ok(id)
    }

    /// Passes a segment to its connection. Returns whether the reply is a reset.
    fn deliver(
        &mut self,
        now: Time,
        id: ConnectionId,
        tcp: &TcpHeader,
        options: &TcpOptions,
        payload: &[u8],
    ) -> (Arrival, bool) {
        let mut arrival = Arrival { payload: payload.len(), ..Arrival::of(Source::Connection(id)) };
        let Some(connection) = self.connections.get_mut(id.0) else { return (arrival, false) };
        let before = connection.last;
        let taken = connection.tcb.input(now, tcp, options, payload);
        (arrival.readable, arrival.acknowledged) = (taken.readable, taken.acknowledged);
        arrival.dropped = taken.beyond.then_some(Drop::BufferFull);
        self.counters.duplicates += u64::from(taken.duplicate);
        self.counters.out_of_order += u64::from(taken.out_of_order);
        // The program has closed the socket, so it will not read these bytes (RFC 2525, 2.17).
        if connection.tcb.readable() > 0 && connection.is_orphan() {
            connection.tcb.abort();
        }
        let why = match taken.reset && !before.is_ending() {
            true if before.is_handshake() => Some(Error::ConnectionRefused),
            true => Some(Error::ConnectionReset),
            false => None,
        };
        self.settle(now, id, why);
        (arrival, taken.refused)
    }
}
