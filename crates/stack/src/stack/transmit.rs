//! Builds outgoing frames. A frame has one segment of a connection, or a packet of several segments that a card
//! segments.

use super::{ConnectionId, Outgoing, Source, Stack};
use crate::checksum::fill_ip;
use crate::frame::TCP;
use crate::header::{Fields, packet_in, write_tcp};
use crate::link::ethertype;
use nicety_types::Time;

impl Stack {
    /// Replaces `frame` with the next frame of a source. Returns `None` if the source has none at present.
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
        Some(Outgoing { payload: 0, retransmission: false, segment: None, needs_checksum: false })
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
        let Some(sending) = connection.tcb.output(now) else {
            connection.ready = false;
            return None;
        };
        let (local, remote, payload) = (connection.local, connection.remote, sending.payload);
        self.link.begin(frame, 0);
        self.link.address(frame, mac, ethertype(local.ip()));
        let fields = Fields {
            seq: sending.seq,
            ack: sending.ack,
            flags: sending.flags,
            window: sending.window,
            options: sending.options,
        };
        write_tcp(frame, local, remote, &fields, payload);
        let (first, second) = connection.tcb.payload(sending.start, payload);
        frame.extend_from_slice(first);
        frame.extend_from_slice(second);
        let needs_checksum = self.spec.checksum_offload;
        if !needs_checksum {
            let packet = packet_in(frame, room, local.ip(), remote.ip(), TCP);
            let filled = fill_ip(frame, &packet);
            debug_assert!(filled.is_ok());
        }
        self.counters.retransmissions += u64::from(sending.again);
        self.settle(now, id, None);
        let segment = (payload > sending.segment).then_some(sending.segment);
        Some(Outgoing { payload, retransmission: sending.again, segment, needs_checksum })
    }
}
