//! Writes headers: IPv4, IPv6, and TCP with its options. The caller writes the checksums when a packet is complete.

use crate::frame::{IpPacket, TCP};
use crate::tcp::TcpOptions;
use std::net::{IpAddr, SocketAddr};

/// Bytes of an IP header without options, in the family of an address.
pub(crate) fn ip_header(address: IpAddr) -> usize {
    if address.is_ipv4() { 20 } else { 40 }
}

/// Appends the header of an IP packet with `payload` bytes. The addresses are of one family.
pub(crate) fn write_ip(out: &mut Vec<u8>, from: IpAddr, to: IpAddr, protocol: u8, payload: usize) {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[0x45, 0]);
            out.extend_from_slice(&(payload as u16 + 20).to_be_bytes());
            out.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.extend_from_slice(&[0x60, 0, 0, 0]);
            out.extend_from_slice(&(payload as u16).to_be_bytes());
            out.extend_from_slice(&[protocol, 64]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        _ => unreachable!("a host's address of the same family"),
    }
}

/// Returns the description of a packet that begins after `room` bytes of a frame and extends to the frame's end.
pub(crate) fn packet_in(frame: &[u8], room: usize, from: IpAddr, to: IpAddr, protocol: u8) -> IpPacket {
    IpPacket {
        source: from,
        destination: to,
        protocol,
        packet: room..frame.len(),
        payload: room + ip_header(from)..frame.len(),
        fragment: false,
    }
}

/// The fields of a TCP header that differ from segment to segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: TcpOptions,
}

/// Appends the IP and TCP headers of a segment with `payload` bytes.
pub(crate) fn write_tcp(
    out: &mut Vec<u8>,
    from: SocketAddr,
    to: SocketAddr,
    fields: &Fields,
    payload: usize,
) {
    let length = 20 + fields.options.length();
    write_ip(out, from.ip(), to.ip(), TCP, length + payload);
    out.extend_from_slice(&from.port().to_be_bytes());
    out.extend_from_slice(&to.port().to_be_bytes());
    out.extend_from_slice(&fields.seq.to_be_bytes());
    out.extend_from_slice(&fields.ack.to_be_bytes());
    out.extend_from_slice(&[(length as u8) << 2, fields.flags]);
    out.extend_from_slice(&fields.window.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    fields.options.write(out);
}
