//! The way of a frame to send: the next segment of a connection, several of them in one for a card that cuts them.

use super::{ConnectionId, Outgoing, Source, Stack};
use crate::checksum;
use crate::frame::{ACK, FIN, PSH, Parsed, TCP, TcpHeader};
use crate::link::ethertype;
use crate::watch::Sent;
use nicety_types::Time;

/// The longest headers of IP and TCP together that a segment of a stream has.
const HEADERS: usize = 120;

impl Stack {
    /// The next frame of a source, in place of what is in `frame`; nothing when it has none at present.
    pub fn transmit(&mut self, now: Time, source: Source, frame: &mut Vec<u8>) -> Option<Outgoing> {
        let sent = match source {
            Source::Host => self.transmit_control(frame),
            Source::Connection(id) => self.transmit_segment(now, id, frame),
            Source::Datagram(id) => self.transmit_datagram(now, id, frame),
        };
        self.counters.sent += u64::from(sent.is_some());
        sent
    }

    fn transmit_control(&mut self, frame: &mut Vec<u8>) -> Option<Outgoing> {
        let Some(next) = self.control.pop_front() else {
            self.control_ready = false;
            return None;
        };
        *frame = next;
        // A reset is smoltcp's, which leaves the checksums to a card that computes them.
        let ip = Parsed::read(frame).ok().and_then(|parsed| parsed.ip);
        let needs_checksum = self.spec.checksum_offload && ip.is_some_and(|ip| ip.protocol == TCP);
        Some(Outgoing { payload: 0, retransmission: false, segment: None, needs_checksum })
    }

    fn transmit_segment(&mut self, now: Time, id: ConnectionId, frame: &mut Vec<u8>) -> Option<Outgoing> {
        let connection = self.connections.get(id.0)?;
        let (hop, known) = (connection.hop, connection.mac);
        let mac = match known {
            Some((version, mac)) if version == self.neighbours.version => mac,
            _ => {
                let found = self.resolve(now, hop, Source::Connection(id));
                let connection = self.connections.get_mut(id.0)?;
                let Some(mac) = found else {
                    (connection.ready, connection.resolving) = (false, true);
                    return None;
                };
                connection.mac = Some((self.neighbours.version, mac));
                mac
            }
        };
        let (room, connection) = (self.link.room(), self.connections.get_mut(id.0)?);
        let reply = connection.replies.pop_front();
        let is_reply = reply.is_some();
        if let Some(reply) = reply {
            *frame = reply;
        } else {
            frame.clear();
            frame.resize(room, 0);
            if !self.engine.output(now, &mut connection.sockets, frame, room) {
                connection.ready = false;
                self.settle(now, id, None);
                // smoltcp may be ready for what it has just done: then the source is in the queue again.
                return None;
            }
        }
        let ip_header = if connection.local.is_ipv4() { 20 } else { 40 };
        let at = room + ip_header;
        let Ok(tcp) = TcpHeader::read(&frame[at..]) else { unreachable!("smoltcp's own segment") };
        let first = frame.len() - at - tcp.length;
        let mut kind = connection.watch.sent(now, &tcp, first);
        let mut payload = first;
        let cuts = self.spec.tso.filter(|_| !is_reply && first > 0 && tcp.flags & !(ACK | PSH) == 0);
        if let Some(most) = cuts {
            let (appended, again) = self.append(now, id, frame, most, &tcp, first);
            payload += appended;
            if again {
                kind = Sent::Again;
            }
        }
        let connection = self.connections.get_mut(id.0)?;
        if kind != Sent::Control && self.spec.loss_probe {
            let delayed = self.spec.delayed_ack.unwrap_or_default();
            connection.watch.arm(now, self.spec.min_rto, delayed, connection.segment);
        }
        if kind == Sent::Again {
            self.counters.retransmissions += 1;
        }
        let local = connection.local.ip();
        self.link.address(frame, mac, ethertype(local));
        self.settle(now, id, None);
        let retransmission = kind == Sent::Again;
        let segment = (payload > first).then_some(first);
        Some(Outgoing { payload, retransmission, segment, needs_checksum: self.spec.checksum_offload })
    }

    /// Appends the segments that follow the one in `frame`, if they are of the same size and go on where it ends. Each is
    /// written so that its payload comes to lie where it belongs; what its headers cover meanwhile is put back.
    /// Returns bytes of payload appended, and whether some of them were sent before.
    fn append(
        &mut self,
        now: Time,
        id: ConnectionId,
        frame: &mut Vec<u8>,
        most: usize,
        tcp: &TcpHeader,
        first: usize,
    ) -> (usize, bool) {
        let room = self.link.room();
        let Some(connection) = self.connections.get_mut(id.0) else { return (0, false) };
        let ip_header = if connection.local.is_ipv4() { 20 } else { 40 };
        let headers = ip_header + tcp.length;
        let (mut appended, mut again, mut flags, mut last) = (0, false, tcp.flags, first);
        let mut saved = [0; HEADERS];
        // Only a full segment is followed by another in the same packet.
        while last == first && frame.len() - room + first <= most && flags & FIN == 0 {
            let end = frame.len();
            let at = end - headers;
            saved[..headers].copy_from_slice(&frame[at..]);
            if !self.engine.output(now, &mut connection.sockets, frame, at) {
                break;
            }
            let Ok(next) = TcpHeader::read(&frame[at + ip_header..]) else {
                unreachable!("smoltcp's own segment")
            };
            let payload = frame.len() - at - ip_header - next.length;
            let sent = connection.watch.sent(now, &next, payload);
            let follows = next.seq == tcp.seq.wrapping_add((first + appended) as u32)
                && next.length == tcp.length
                && (next.ack, next.window) == (tcp.ack, tcp.window)
                && (1..=first).contains(&payload)
                && next.flags & !(ACK | PSH | FIN) == 0;
            if follows {
                flags |= next.flags;
                (appended, last) = (appended + payload, payload);
                again |= sent == Sent::Again;
            } else {
                let mut other = vec![0; room];
                other.extend_from_slice(&frame[at..]);
                connection.reply(other);
                frame.truncate(end);
            }
            frame[at..end].copy_from_slice(&saved[..headers]);
            if !follows {
                break;
            }
        }
        if appended > 0 {
            let bytes = frame.len() - room;
            let (field, value) = if ip_header == 20 { (2, bytes) } else { (4, bytes - 40) };
            frame[room + field..room + field + 2].copy_from_slice(&(value as u16).to_be_bytes());
            frame[room + ip_header + 13] = flags;
        }
        (appended, again)
    }

    /// Finishes the headers of a packet that this crate has made, which has room for the frame's.
    pub(super) fn seal(&self, packet: &mut [u8]) {
        if !self.spec.checksum_offload {
            // The address is written when it is sent; the type is needed to find the packet.
            let kind =
                if packet[self.link.room()] >> 4 == 4 { crate::frame::IPV4 } else { crate::frame::IPV6 };
            self.link.address(packet, self.link.mac, kind);
            let sealed = checksum::fill(packet);
            debug_assert!(sealed.is_ok());
        }
    }
}
