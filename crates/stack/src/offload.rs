//! Offload functions of a card: segmentation (TSO), and coalescing of a flow's frames (LRO).

use crate::checksum::fill_ip;
use crate::frame::{ACK, FIN, IpPacket, Malformed, PSH, Parsed, TCP, TcpHeader, be16};
use std::net::IpAddr;

/// Cuts a TCP segment into frames with at most `payload` bytes of its payload, like a card with TSO. Passes each frame
/// to `emit`, with correct checksums. Sequence numbers continue from frame to frame. PSH and FIN are in the last frame.
/// IPv4's identification increases by one per frame.
///
/// # Errors
/// [`Malformed`] for a frame without TCP, or zero bytes per frame.
pub fn segment(frame: &[u8], payload: usize, mut emit: impl FnMut(&[u8])) -> Result<(), Malformed> {
    let Some(ip) = Parsed::read(frame)?.ip.filter(|ip| ip.protocol == TCP && !ip.fragment) else {
        return Err(Malformed::Header);
    };
    let tcp = TcpHeader::read(&frame[ip.payload.clone()])?;
    let (start, end) = (ip.payload.start + tcp.length, ip.payload.end);
    if payload == 0 {
        return Err(Malformed::Header);
    }
    let mut out = Vec::with_capacity(frame.len().min(start.saturating_add(payload)));
    let mut at = start;
    let mut count = 0u16;
    loop {
        let to = end.min(at.saturating_add(payload));
        out.clear();
        out.extend_from_slice(&frame[..start]);
        out.extend_from_slice(&frame[at..to]);
        let seq = tcp.seq.wrapping_add((at - start) as u32);
        out[ip.payload.start + 4..ip.payload.start + 8].copy_from_slice(&seq.to_be_bytes());
        if to < end {
            out[ip.payload.start + 13] &= !(PSH | FIN);
        }
        set_length(&mut out, &ip);
        if ip.source.is_ipv4() {
            let id = ip.packet.start + 4;
            let value = be16(frame, id).wrapping_add(count);
            out[id..id + 2].copy_from_slice(&value.to_be_bytes());
        }
        let piece = IpPacket {
            packet: ip.packet.start..out.len(),
            payload: ip.payload.start..out.len(),
            ..ip.clone()
        };
        fill_ip(&mut out, &piece)?;
        emit(&out);
        (at, count) = (to, count.wrapping_add(1));
        if at == end {
            return Ok(());
        }
    }
}

/// Writes the length field of an IP packet that extends to the frame's end.
fn set_length(frame: &mut [u8], ip: &IpPacket) {
    let (field, length) = match ip.source {
        IpAddr::V4(_) => (ip.packet.start + 2, frame.len() - ip.packet.start),
        IpAddr::V6(_) => (ip.packet.start + 4, frame.len() - ip.payload.start),
    };
    frame[field..field + 2].copy_from_slice(&(length as u16).to_be_bytes());
}

/// Appends `next` to `frame` if `next` is the next segment of the same flow, like a card with LRO. Returns whether it
/// has appended `next`. The caller has verified the checksums of both frames. Both segments must have the flag ACK, and
/// no other flag but PSH. Their headers may differ only in sequence number, checksums, PSH and window. The IP packet of
/// the result must not exceed `most` bytes. Its checksums are not written, so pass it to the stack with
/// [`ChecksumStatus::Good`](crate::ChecksumStatus::Good).
pub fn coalesce(frame: &mut Vec<u8>, next: &[u8], most: usize) -> bool {
    join(frame, next, most.min(65535)).is_some()
}

fn join(frame: &mut Vec<u8>, next: &[u8], most: usize) -> Option<()> {
    let (a, b) = (Parsed::read(frame).ok()?, Parsed::read(next).ok()?);
    let same_link = a.macs == b.macs && a.vlan == b.vlan && a.l3 == b.l3;
    let (a, b) = (a.ip?, b.ip?);
    if !same_link
        || (a.source, a.destination, a.protocol) != (b.source, b.destination, TCP)
        || b.protocol != TCP
        || a.fragment
        || b.fragment
        || a.payload.start != b.payload.start
    {
        return None;
    }
    let (first, second) =
        (TcpHeader::read(&frame[a.payload.clone()]).ok()?, TcpHeader::read(&next[b.payload.clone()]).ok()?);
    let (held, more) = (a.payload.len() - first.length, b.payload.len() - second.length);
    let start = b.payload.start + second.length;
    let plain = |flags: u8| flags & ACK != 0 && flags & !(ACK | PSH) == 0;
    let options = 20..first.length;
    if first.ports != second.ports
        || first.seq.wrapping_add(held as u32) != second.seq
        || first.ack != second.ack
        || first.length != second.length
        || frame[a.payload.start..][options.clone()] != next[b.payload.start..][options]
        || !plain(first.flags)
        || !plain(second.flags)
        // PSH ends a coalesced frame. A segment without payload is not coalesced.
        || first.flags & PSH != 0
        || held == 0
        || more == 0
        || a.packet.len() + more > most
    {
        return None;
    }
    frame.truncate(a.packet.end);
    frame.extend_from_slice(&next[start..b.packet.end]);
    frame[a.payload.start + 13] |= second.flags;
    frame[a.payload.start + 14..a.payload.start + 16].copy_from_slice(&second.window.to_be_bytes());
    set_length(frame, &a);
    Some(())
}
