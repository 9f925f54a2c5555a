//! A packet generator: a card that sends packets without a host, as fast as its link allows. It drops all packets that
//! it receives.
//!
//! The generator stands for the tester of a laboratory: it sends at full line rate, and no host or bus limits it. Its
//! packets use the port like any other packets, so the receiver's credits limit their rate.

use crate::Card;
use crate::wire::Repr;
use nicety_fabric::{Channel, Label, Packet};
use nicety_nic_core::parts::{DueTime, Offered, Pace};
use nicety_portals::Header;
use nicety_types::{Buffer, Duration, Flight, NodeId, Path, Payload, Starter, Time};
use std::cell::Cell;
use std::rc::Rc;

/// Equal messages that are sent one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The target of the messages.
    pub target: NodeId,
    /// The portal table entry at the target.
    pub pt: u32,
    /// The match bits of the messages.
    pub match_bits: u64,
    /// Payload of each packet in bytes, at least one byte.
    pub packet_bytes: u64,
    /// Number of packets of each message, at least one.
    pub message_packets: u64,
    /// Number of messages.
    pub messages: u64,
}

/// The target of single-packet messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The node.
    pub node: NodeId,
    /// The portal table entry at this node.
    pub pt: u32,
    /// The match bits of the messages.
    pub match_bits: u64,
}

impl Card {
    /// Returns the time between the starts of packets of this size at line rate. It is the gap between messages or the
    /// serialisation time of a packet, whichever is longer.
    pub fn wire_interval(&self, packet_bytes: u64) -> Duration {
        self.transmit.port.serialisation(packet_bytes).max(self.spec.send_gap)
    }

    /// Sends these messages at line rate, or as fast as the receiver returns credits. `fill` writes the payload of a
    /// packet. Its first argument is the packet's index in the message. From now on the card drops every packet that it
    /// receives.
    ///
    /// # Panics
    /// When a packet exceeds the card's maximum payload.
    pub async fn generate(self: &Rc<Card>, what: &Generated, mut fill: impl FnMut(u64, &mut [u8])) {
        let Generated { packet_bytes, message_packets, .. } = *what;
        assert!((1..=self.spec.packet_payload).contains(&packet_bytes), "packets of {packet_bytes} bytes");
        self.receive.discard_all();
        let interval = self.wire_interval(packet_bytes);
        let mut next = Time::ZERO;
        for _ in 0..what.messages {
            let length = packet_bytes * message_packets;
            let header = Header::put(self.node, what.target, what.pt, what.match_bits, length);
            let message = self.next_message();
            self.sim.until(next).await;
            self.record_sent(message, &header, Starter::Card, &Path::from(self.sim.now()));
            for packet in 0..message_packets {
                self.sim.until(next).await;
                let turn =
                    self.transmit.port.turn(what.target, Flight::resting(Path::from(self.sim.now()))).await;
                next = self.sim.now() + interval;
                let offset = packet * packet_bytes;
                let payload = Buffer::filled_by(packet_bytes as usize, |bytes| fill(offset, bytes));
                let packet = Packet {
                    label: Label { destination: what.target, message, offset },
                    channel: Channel::Data(0),
                    header: Repr::part(&header, message.sequence, offset).emit(),
                    payload: Payload::real(payload),
                    path: Path::from(Time::ZERO),
                };
                self.transmit.port.launch(packet, turn);
            }
        }
    }

    /// Sends each single-packet message when it is due, or as soon after this time as the receiver's credits allow.
    /// `next` writes a packet's payload and returns its due time, or returns `None` after the last packet. Stops when
    /// `over` returns true. From now on the card drops every packet that it receives.
    ///
    /// # Panics
    /// When a packet is empty, or exceeds the card's maximum payload.
    pub async fn offer(
        self: &Rc<Card>,
        target: Target,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
        over: &Cell<bool>,
    ) -> Offered {
        self.receive.discard_all();
        let mut pace = Pace::from(self.sim.now());
        let mut bytes = Vec::new();
        while let Some(due) = next(&mut bytes) {
            let length = bytes.len() as u64;
            assert!((1..=self.spec.packet_payload).contains(&length), "a packet of {length} bytes");
            self.sim.until(pace.next(due)).await;
            if over.get() {
                break;
            }
            let interval = self.wire_interval(length);
            let header = Header::put(self.node, target.node, target.pt, target.match_bits, length);
            let message = self.next_message();
            let path = self.recorder.path(self.sim.now());
            self.record_sent(message, &header, Starter::Card, &path);
            let turn = self.transmit.port.turn(target.node, Flight::resting(path)).await;
            pace.sent(self.sim.now(), interval, length);
            let packet = Packet {
                label: Label { destination: target.node, message, offset: 0 },
                channel: Channel::Data(0),
                header: Repr::part(&header, message.sequence, 0).emit(),
                payload: Payload::real(Buffer::filled_by(bytes.len(), |buffer| {
                    buffer.copy_from_slice(&bytes)
                })),
                path: Path::from(Time::ZERO),
            };
            self.transmit.port.launch(packet, turn);
        }
        pace.end()
    }
}
