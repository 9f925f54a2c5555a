//! Makes frames for the card's port from packets of a capture.

use super::addresses::{CapturedPacket, Contents};
use crate::pcsa::{END_OF_REPLAY, Frame};
use nicety_traffic::capture::{Skipped, Source, ip_of};

/// Returns the frame that replays a packet, with at most `largest` bytes of payload. An Ethernet packet stays as captured. For a
/// packet from another link, the frame contains only the IP packet.
///
/// Returns `None` for a packet that cannot be replayed. Its capture is too short, or it is not IP and not from an Ethernet link,
/// or it has the EtherType that ends a replay.
pub(super) fn frame_of(seen: &CapturedPacket<'_>, largest: usize, contents: &mut Contents) -> Option<Frame> {
    let CapturedPacket { link, bytes, source } = seen;
    let (station, kind, payload) = match (source, *bytes) {
        (Err(Skipped::Cut | Skipped::Link), _) => return None,
        (_, [_, _, _, _, _, _, a, b, c, d, e, f, high, low, payload @ ..]) if *link == ETHERNET => {
            ([*a, *b, *c, *d, *e, *f], u16::from_be_bytes([*high, *low]), payload)
        }
        (Err(Skipped::NotIp), _) => return None,
        (Ok(Source::V4(_)), _) => ([0; 6], 0x0800, ip_of(*link, bytes)?),
        (Ok(Source::V6(_)), _) => ([0; 6], 0x86dd, ip_of(*link, bytes)?),
    };
    if kind == END_OF_REPLAY {
        return None;
    }
    contents.oversized_packets += u64::from(payload.len() > largest);
    Some(Frame { station, kind, payload: payload[..payload.len().min(largest)].to_vec() })
}

const ETHERNET: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_traffic::capture::source_of;

    fn frame(link: u32, bytes: &[u8]) -> (Option<Frame>, u64) {
        let mut contents = Contents::default();
        let seen = CapturedPacket { link, bytes, source: source_of(link, bytes) };
        (frame_of(&seen, 30, &mut contents), contents.oversized_packets)
    }

    #[test]
    fn packets_become_frames() {
        let ip = [&[0x45][..], &[0; 11], &[10, 0, 0, 1], &[1; 4]].concat();
        let ethernet = [&[1; 6][..], &[2; 6], &[8, 0], &ip].concat();
        let expected = Frame { station: [2; 6], kind: 0x0800, payload: ip.clone() };
        assert_eq!(frame(1, &ethernet), (Some(expected.clone()), 0));
        let long = [&ethernet[..], &[7; 20]].concat();
        let mut shortened = expected.payload.clone();
        shortened.extend([7; 10]);
        assert_eq!(frame(1, &long), (Some(Frame { payload: shortened, ..expected.clone() }), 1));
        // An IP packet alone, behind a cooked header, and behind a loopback header.
        let bare = Frame { station: [0; 6], ..expected };
        let cooked = [&[0; 14][..], &[8, 0], &ip].concat();
        for (link, bytes) in [(101, ip.clone()), (113, cooked), (0, [&[2, 0, 0, 0][..], &ip].concat())] {
            assert_eq!(frame(link, &bytes), (Some(bare.clone()), 0), "{link}");
        }
        // An ARP packet stays as captured. Truncated packets, packets of unsupported links, packets that are not IP, and the end
        // of a replay give no frame.
        let arp = [&[1; 6][..], &[2; 6], &[8, 6], &[0; 28]].concat();
        assert_eq!(frame(1, &arp).0.map(|frame| frame.kind), Some(0x0806));
        let end = [&[1; 12][..], &END_OF_REPLAY.to_be_bytes(), &[0; 46]].concat();
        for (link, bytes) in
            [(1, &ethernet[..20]), (999, &ethernet[..]), (1, &end[..]), (101, &[0x55; 40][..])]
        {
            assert_eq!(frame(link, bytes).0, None, "{link}");
        }
    }
}
