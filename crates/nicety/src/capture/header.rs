//! The bytes of a packet in a capture.
//!
//! Ethernet frames are as on the wire, without their frame check sequence. On any other link, the following header
//! precedes the card's headers. Its numbers are big-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | flags, as below |
//! | 2..4 | bytes of the card's header |
//! | 4 | virtual channel; 0 on the control channel |
//! | 5..8 | 0 |
//! | 8..12 | rank of the source |
//! | 12..16 | rank of the destination |
//! | 16..24 | number of the message at its source |
//! | 24..32 | offset of the payload in the message |
//! | 32..40 | bytes of payload |
//!
//! Flags:
//!
//! - 1: the control channel
//! - 2: lost on the link
//! - 4: damaged
//! - 8: sent again
//! - 16: the file lacks bytes of the payload, because the payload is phantom or too long
//! - 32: dropped by a switch or card
//! - 64: no packet, but a pause frame, which stands in place of the card's header

use nicety_fabric::{Captured, Channel, Disposition};
use nicety_nic_core::LinkLayer;

/// Bytes of the header.
const HEADER: usize = 40;
const VERSION: u8 = 1;

/// Returns the number of this link layer in tcpdump.org's registry of link types.
pub(super) const fn link_type(layer: LinkLayer) -> u16 {
    match layer {
        LinkLayer::Ethernet { .. } => 1,
        LinkLayer::Own => 147,
    }
}

/// Returns a packet's bytes in the file, and the packet's length with its whole payload.
pub(super) fn bytes_of(layer: LinkLayer, packet: &Captured<'_>) -> (Vec<u8>, u64) {
    let &Captured { label, channel, disposition, header, payload, length, pause, .. } = packet;
    let mut bytes = match layer {
        LinkLayer::Ethernet { .. } if pause.is_some() => header.to_vec(),
        LinkLayer::Ethernet { checksum } => header[..header.len().saturating_sub(checksum)].to_vec(),
        LinkLayer::Own => {
            let (control, channel) = match channel {
                Channel::Control => (true, 0),
                Channel::Data(channel) => (false, channel),
            };
            let missing = length > payload.len() as u64;
            let Disposition { lost, dropped, damaged, again, .. } = disposition;
            let flags = [control, lost, damaged, again, missing, dropped.is_some(), pause.is_some()];
            let flags = (0..).zip(flags).map(|(bit, set)| u8::from(set) << bit).sum();
            let mut bytes = Vec::with_capacity(HEADER + header.len() + payload.len());
            bytes.extend([VERSION, flags]);
            bytes.extend((header.len() as u16).to_be_bytes());
            bytes.extend([channel, 0, 0, 0]);
            bytes.extend(label.message.source.0.to_be_bytes());
            bytes.extend(label.destination.0.to_be_bytes());
            bytes.extend([label.message.sequence, label.offset, length].map(u64::to_be_bytes).concat());
            bytes.extend(header);
            bytes
        }
    };
    let whole = bytes.len() as u64 + length;
    bytes.extend(payload);
    (bytes, whole)
}
