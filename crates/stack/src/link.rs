//! Writes and checks the Ethernet header and the 802.1Q tag before a packet.

use crate::frame::{ETHERNET, IPV4, IPV6, Parsed, TAG, VLAN};
use std::net::{IpAddr, Ipv6Addr};

/// The common properties of a host's frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub mac: [u8; 6],
    pub vlan: Option<u16>,
}

/// The broadcast address.
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];

impl Link {
    /// Number of bytes in a frame before the IP packet.
    pub fn room(&self) -> usize {
        ETHERNET + if self.vlan.is_some() { TAG } else { 0 }
    }

    /// Replaces `out` with a zeroed frame with room for the header and `bytes` bytes.
    pub fn begin(&self, out: &mut Vec<u8>, bytes: usize) {
        out.clear();
        out.resize(self.room() + bytes, 0);
    }

    /// Writes the Ethernet header of a frame, with the 802.1Q tag if the host has a network.
    pub fn address(&self, frame: &mut [u8], to: [u8; 6], ethertype: u16) {
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&self.mac);
        let mut at = 12;
        if let Some(vlan) = self.vlan {
            frame[12..14].copy_from_slice(&VLAN.to_be_bytes());
            frame[14..16].copy_from_slice(&vlan.to_be_bytes());
            at = 16;
        }
        frame[at..at + 2].copy_from_slice(&ethertype.to_be_bytes());
    }

    /// Whether a frame belongs to this host's 802.1Q network: it has the network's tag, or no tag if the host has no
    /// network. A tag with number 0 counts as untagged.
    pub fn same_network(&self, parsed: &Parsed) -> bool {
        parsed.vlan.filter(|&v| v != 0) == self.vlan
    }
}

/// Returns the EtherType of packets in the family of an address.
pub(crate) fn ethertype(address: IpAddr) -> u16 {
    if address.is_ipv4() { IPV4 } else { IPV6 }
}

/// Returns the solicited-node group of an address (RFC 4291, 2.7.1).
pub(crate) fn solicited(address: Ipv6Addr) -> Ipv6Addr {
    let o = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, o[13], o[14], o[15]])
}

/// Returns the MAC address of a multicast group (RFC 2464, 7).
pub(crate) fn group_mac(group: Ipv6Addr) -> [u8; 6] {
    let o = group.octets();
    [0x33, 0x33, o[12], o[13], o[14], o[15]]
}
