//! Replies that no socket sends: resets, ICMP's unreachable port, and echo replies.

use super::{Arrival, Source, Stack};
use crate::checksum::fill_ip;
use crate::frame::{ACK, FIN, ICMP, ICMPV6, IpPacket, RST, SYN, TCP, TcpHeader};
use crate::header::{Fields, packet_in, write_ip, write_tcp};
use crate::link::ethertype;
use crate::tcp::TcpOptions;
use std::net::SocketAddr;

/// Maximum size of an ICMP error, with the packet that it quotes. Every host of IPv4, and of IPv6, can receive this
/// size (RFC 1812, 4.3.2.3; RFC 4443, 2.4).
const MOST_V4: usize = 576;
const MOST_V6: usize = 1280;

impl Stack {
    /// Sends a reset in reply to a segment (RFC 9293, 3.10.7.1).
    pub(super) fn refuse(&mut self, tcp: &TcpHeader, ip: &IpPacket, payload: usize, mac: [u8; 6]) {
        if tcp.flags & RST != 0 {
            return;
        }
        let controls = u32::from(tcp.flags & SYN != 0) + u32::from(tcp.flags & FIN != 0);
        let (seq, ack, flags) = match tcp.flags & ACK {
            0 => (0, tcp.seq.wrapping_add(payload as u32 + controls), RST | ACK),
            _ => (tcp.ack, 0, RST),
        };
        let own = SocketAddr::new(ip.destination, tcp.ports.1);
        let peer = SocketAddr::new(ip.source, tcp.ports.0);
        let mut frame = vec![0; self.link.room()];
        let fields = Fields { seq, ack, flags, window: 0, options: TcpOptions::default() };
        write_tcp(&mut frame, own, peer, &fields, 0);
        self.reply(frame, ip, TCP, mac);
    }

    /// Replies to an echo request.
    pub(super) fn echo(&mut self, frame: &[u8], ip: &IpPacket, mac: [u8; 6]) -> Arrival {
        let request = &frame[ip.payload.clone()];
        let kind = if ip.source.is_ipv4() { 0 } else { 129 };
        self.answer(ip, ip.protocol, &[&[kind, 0, 0, 0], request.get(4..).unwrap_or_default()], mac);
        Arrival::of(Source::Host)
    }

    /// Sends an ICMP error in reply to a datagram, because no socket has its port.
    pub(super) fn unreachable_port(&mut self, frame: &[u8], ip: &IpPacket, mac: [u8; 6]) -> Arrival {
        let (protocol, kind, code, most) =
            if ip.source.is_ipv4() { (ICMP, 3, 3, MOST_V4 - 28) } else { (ICMPV6, 1, 4, MOST_V6 - 48) };
        let packet = &frame[ip.packet.clone()];
        let packet = &packet[..packet.len().min(most)];
        self.answer(ip, protocol, &[&[kind, code, 0, 0, 0, 0, 0, 0], packet], mac);
        Arrival::of(Source::Host)
    }

    /// Sends a packet back to the sender of the packet `ip`.
    fn answer(&mut self, ip: &IpPacket, protocol: u8, parts: &[&[u8]], mac: [u8; 6]) {
        let mut frame = vec![0; self.link.room()];
        let length = parts.iter().map(|part| part.len()).sum();
        write_ip(&mut frame, ip.destination, ip.source, protocol, length);
        parts.iter().for_each(|part| frame.extend_from_slice(part));
        self.reply(frame, ip, protocol, mac);
    }

    /// Writes the Ethernet header and the checksums of a reply, and queues it. A group address gets no reply.
    fn reply(&mut self, mut frame: Vec<u8>, ip: &IpPacket, protocol: u8, mac: [u8; 6]) {
        if mac[0] & 1 != 0 {
            return;
        }
        // If the neighbour table lacks the sender, the reply goes to the source MAC address of its frame.
        let to = self.neighbours.get(ip.source).unwrap_or(mac);
        let packet = packet_in(&frame, self.link.room(), ip.destination, ip.source, protocol);
        let filled = fill_ip(&mut frame, &packet);
        debug_assert!(filled.is_ok());
        self.link.address(&mut frame, to, ethertype(ip.source));
        self.control(frame);
    }
}
