//! The way of a received frame: link, network, transport, socket.

use super::names::same_family;
use super::{Arrival, ChecksumStatus, ConnectionId, Drop, Source, Stack};
use crate::checksum::verify;
use crate::connection::{Connection, renews};
use crate::error::Error;
use crate::frame::{ACK, ARP, ICMPV6, IPV4, IPV6, IpPacket, Parsed, RST, SYN, TCP, TcpHeader, UDP};
use crate::link::{BROADCAST, ethertype, group_mac, solicited};
use crate::neighbour::{advertise, arp};
use crate::spec::unicast;
use nicety_types::Time;
use smoltcp::socket::tcp::State;
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, Icmpv6Packet, Icmpv6Repr, NdiscRepr};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const ICMP: u8 = 1;
const ECHO_V4: u8 = 8;
const ECHO_V6: u8 = 128;
const SOLICIT: u8 = 135;
const ADVERTISE: u8 = 136;

impl Arrival {
    fn of(source: Source) -> Arrival {
        Arrival { source, payload: 0, readable: 0, acknowledged: 0, dropped: None }
    }
}

impl Stack {
    /// A frame from the card, without its frame check sequence. `checksum` says what the card knows of it.
    ///
    /// Any bytes will do: what cannot be used is dropped and counted.
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
            UDP => self.receive_datagram(now, frame, ip, from),
            ICMP if ip.source.is_ipv4() && frame[ip.payload.clone()].first() == Some(&ECHO_V4) => {
                Ok(self.answer(now, frame, ip, from))
            }
            ICMPV6 if ip.source.is_ipv6() => self.receive_icmp_v6(now, frame, ip, from),
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
        let packet = ArpPacket::new_checked(packet).map_err(|_| Drop::Malformed)?;
        let Ok(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr,
            source_protocol_addr,
            target_protocol_addr,
            ..
        }) = ArpRepr::parse(&packet)
        else {
            return Err(Drop::Malformed);
        };
        let Some(network) = self.spec.ipv4 else { return Err(Drop::Protocol) };
        if !unicast(source_protocol_addr.into()) || source_protocol_addr == network.address {
            return Err(Drop::Malformed);
        }
        let to_us = target_protocol_addr == network.address;
        // RFC 826: whoever asks for this host will be spoken to.
        let asked = to_us && operation == ArpOperation::Request;
        let waiting = self.neighbours.learn(source_protocol_addr.into(), source_hardware_addr.0, asked);
        self.resolved(waiting);
        if asked {
            let mut frame = Vec::new();
            let to = (source_hardware_addr.0, source_protocol_addr);
            arp(self.link, ArpOperation::Reply, network.address, to, &mut frame);
            self.control(frame);
        }
        if to_us { Ok(Arrival::of(Source::Host)) } else { Err(Drop::NotForUs) }
    }

    fn receive_icmp_v6(
        &mut self,
        now: Time,
        frame: &[u8],
        ip: &IpPacket,
        from: [u8; 6],
    ) -> Result<Arrival, Drop> {
        let body = &frame[ip.payload.clone()];
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (ip.source, ip.destination) else {
            return Err(Drop::Malformed);
        };
        match body.first() {
            Some(&ECHO_V6) if !destination.is_multicast() => Ok(self.answer(now, frame, ip, from)),
            Some(&(SOLICIT | ADVERTISE)) => {
                // RFC 4861, 7.1: one that was forwarded by a router is not of this link.
                if frame[ip.packet.start + 7] != 255 {
                    return Err(Drop::Malformed);
                }
                let packet = Icmpv6Packet::new_checked(body).map_err(|_| Drop::Malformed)?;
                // The checksum was looked at above, or by the card.
                let caps = smoltcp::phy::ChecksumCapabilities::ignored();
                match Icmpv6Repr::parse(&source, &destination, &packet, &caps) {
                    Ok(Icmpv6Repr::Ndisc(message)) => self.receive_ndisc(source, from, message),
                    _ => Err(Drop::Malformed),
                }
            }
            _ => Err(Drop::Protocol),
        }
    }

    fn receive_ndisc(
        &mut self,
        source: Ipv6Addr,
        from: [u8; 6],
        message: NdiscRepr,
    ) -> Result<Arrival, Drop> {
        let Some(network) = self.spec.ipv6 else { return Err(Drop::Protocol) };
        let mac = |lladdr: Option<smoltcp::wire::RawHardwareAddress>| {
            lladdr.and_then(|l| <[u8; 6]>::try_from(l.as_bytes()).ok()).unwrap_or(from)
        };
        match message {
            NdiscRepr::NeighborSolicit { target_addr, lladdr } if target_addr == network.address => {
                let mac = mac(lladdr);
                let waiting = self.neighbours.learn(source.into(), mac, true);
                self.resolved(waiting);
                let mut frame = Vec::new();
                advertise(self.link, network.address, (mac, source), &mut frame);
                self.control(frame);
                Ok(Arrival::of(Source::Host))
            }
            NdiscRepr::NeighborAdvert { target_addr, lladdr, .. } => {
                let waiting = self.neighbours.learn(target_addr.into(), mac(lladdr), false);
                self.resolved(waiting);
                Ok(Arrival::of(Source::Host))
            }
            _ => Err(Drop::NotForUs),
        }
    }

    /// Has smoltcp answer a packet that is for no socket.
    pub(super) fn answer(&mut self, now: Time, frame: &[u8], ip: &IpPacket, from: [u8; 6]) -> Arrival {
        let mut reply = Vec::new();
        if self.engine.refuse(now, &frame[ip.packet.clone()], &mut reply) && from[0] & 1 == 0 {
            // The sender may be no neighbour that is known, and is at this address.
            let to = self.neighbours.get(ip.source).unwrap_or(from);
            self.link.address(&mut reply, to, ethertype(ip.source));
            self.control(reply);
        }
        Arrival::of(Source::Host)
    }

    fn receive_segment(
        &mut self,
        now: Time,
        frame: &[u8],
        ip: &IpPacket,
        from: [u8; 6],
    ) -> Result<Arrival, Drop> {
        let tcp = TcpHeader::read(&frame[ip.payload.clone()]).map_err(|_| Drop::Malformed)?;
        let payload = ip.payload.len() - tcp.length;
        if tcp.ports.0 == 0 || tcp.ports.1 == 0 {
            return Err(Drop::Malformed);
        }
        let flow = (tcp.ports.1, SocketAddr::new(ip.source, tcp.ports.0));
        let mut id = self.flows.get(&flow).copied();
        if let Some(old) = id
            && let Some(connection) = self.connections.get(old.0)
            && renews(connection, &tcp)
            && self.ports.contains_key(&flow.0)
        {
            if connection.held {
                self.detach(flow, old)
            } else {
                self.remove(old)
            }
            id = None;
        }
        let begins = tcp.flags & (SYN | ACK | RST) == SYN;
        let id = match id {
            Some(id) => id,
            None if begins && self.ports.contains_key(&flow.0) => self.begin(flow, ip)?,
            None => {
                let arrival = self.answer(now, frame, ip, from);
                return Ok(Arrival { payload, dropped: Some(Drop::NoPort), ..arrival });
            }
        };
        Ok(self.deliver(now, id, &frame[ip.packet.clone()], &tcp, payload))
    }

    /// A connection for a SYN.
    fn begin(&mut self, flow: (u16, SocketAddr), ip: &IpPacket) -> Result<ConnectionId, Drop> {
        let listener = self.ports[&flow.0];
        let Some(entry) = self.listeners.get(listener.0) else { return Err(Drop::NoPort) };
        if entry.begun + entry.queue.len() >= entry.backlog {
            return Err(Drop::Backlog);
        }
        let hop = self.next_hop(flow.1.ip()).map_err(|_| Drop::Malformed)?;
        let setup = self.setup(&entry.options, ip.source).map_err(|_| Drop::Backlog)?;
        let local = SocketAddr::new(ip.destination, flow.0);
        debug_assert!(same_family(local, flow.1));
        let mut connection = Connection::new(local, flow.1, hop, &setup);
        connection.listen().map_err(|_| Drop::Malformed)?;
        (connection.listener, connection.is_begun) = (Some(listener), true);
        let id = self.insert(connection).ok_or(Drop::Backlog)?;
        if let Some(entry) = self.listeners.get_mut(listener.0) {
            entry.begun += 1;
        }
        Ok(id)
    }

    fn deliver(
        &mut self,
        now: Time,
        id: ConnectionId,
        packet: &[u8],
        tcp: &TcpHeader,
        payload: usize,
    ) -> Arrival {
        let mut arrival = Arrival { payload, ..Arrival::of(Source::Connection(id)) };
        let Some(connection) = self.connections.get_mut(id.0) else { return arrival };
        let before = connection.last;
        let mut reply = std::mem::take(&mut self.scratch);
        let taken = connection.input(&mut self.engine, now, packet, tcp, payload, &mut reply);
        if taken.answered {
            connection.reply(std::mem::take(&mut reply));
        }
        self.scratch = reply;
        (arrival.readable, arrival.acknowledged) = (taken.readable, taken.acknowledged);
        if taken.beyond {
            arrival.dropped = Some(Drop::BufferFull);
        } else if payload > 0 && taken.readable == 0 {
            *if taken.duplicate { &mut self.counters.duplicates } else { &mut self.counters.out_of_order } +=
                1;
        }
        connection.waiting_since = connection.waiting_since.map(|_| now);
        if taken.acknowledged > 0 {
            connection.rescue_at = None;
            let delayed = self.spec.delayed_ack.unwrap_or_default();
            if self.spec.loss_probe {
                connection.watch.arm(now, self.spec.min_rto, delayed, connection.segment);
            }
        }
        if taken.lost_more && self.spec.loss_probe {
            self.counters.recoveries += 1;
            connection.nudge(&mut self.engine, now);
        }
        // Nobody will read what comes to a socket that was closed (RFC 2525, 2.17).
        let socket = connection.socket();
        if socket.can_recv() && !connection.held && connection.listener.is_none() {
            connection.socket().abort();
        }
        let refused = before == State::SynSent;
        let reset =
            tcp.flags & RST != 0 && !matches!(before, State::LastAck | State::Closing | State::TimeWait);
        let why = if !reset {
            None
        } else if refused {
            Some(Error::ConnectionRefused)
        } else {
            Some(Error::ConnectionReset)
        };
        self.settle(now, id, why);
        arrival
    }
}
