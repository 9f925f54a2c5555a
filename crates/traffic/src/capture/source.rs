//! Source addresses of packets.

/// A source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An IPv4 address, in wire order.
    V4([u8; 4]),
    /// An IPv6 address, in wire order.
    V6([u8; 16]),
}

/// The reason why a packet has no source address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The packet is not IP.
    NotIp,
    /// The captured part of the packet ends before its source address.
    Cut,
    /// The link type is not supported.
    Link,
}

const ETHERNET: u32 = 1;
const LINUX_COOKED: u32 = 113;
const LINUX_COOKED_2: u32 = 276;
/// Link types of IP packets without a link header. Only some systems write the last two.
const RAW: [u32; 5] = [101, 228, 229, 12, 14];
/// Link types of BSD's loopback. The header of the first is in host byte order, that of the second in network byte
/// order.
const LOOPBACK: [u32; 2] = [0, 108];

/// Names of common link types. Source: the list of LINKTYPE values of tcpdump.org.
const NAMES: [(u32, &str); 20] = [
    (0, "LINKTYPE_NULL"),
    (1, "LINKTYPE_ETHERNET"),
    (9, "LINKTYPE_PPP"),
    (50, "LINKTYPE_PPP_HDLC"),
    (101, "LINKTYPE_RAW"),
    (104, "LINKTYPE_C_HDLC"),
    (105, "LINKTYPE_IEEE802_11"),
    (108, "LINKTYPE_LOOP"),
    (113, "LINKTYPE_LINUX_SLL"),
    (127, "LINKTYPE_IEEE802_11_RADIOTAP"),
    (147, "LINKTYPE_USER0"),
    (189, "LINKTYPE_USB_LINUX"),
    (220, "LINKTYPE_USB_LINUX_MMAPPED"),
    (228, "LINKTYPE_IPV4"),
    (229, "LINKTYPE_IPV6"),
    (240, "LINKTYPE_NETANALYZER"),
    (249, "LINKTYPE_USBPCAP"),
    (253, "LINKTYPE_NETLINK"),
    (274, "LINKTYPE_ETHERNET_MPACKET"),
    (276, "LINKTYPE_LINUX_SLL2"),
];

/// Returns the name of a common link type.
pub fn link_name(link: u32) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == link).map(|(_, name)| *name)
}

/// Returns the source address of a packet of this link type.
///
/// Supports Ethernet with any number of VLAN tags, Linux's cooked captures of both versions, plain IP, and BSD's loopback.
///
/// # Errors
/// The reason why the packet has no source address.
pub fn source_of(link: u32, bytes: &[u8]) -> Result<Source, Skipped> {
    match link {
        ETHERNET => by_type(half(bytes, 12)?, bytes.get(14..)),
        LINUX_COOKED => by_type(half(bytes, 14)?, bytes.get(16..)),
        LINUX_COOKED_2 => by_type(half(bytes, 0)?, bytes.get(20..)),
        _ if RAW.contains(&link) => ip(bytes),
        _ if LOOPBACK.contains(&link) => {
            let family = bytes.get(..4).ok_or(Skipped::Cut)?;
            // The address family is a small number in either byte order. 2 is IPv4. The number of IPv6 differs between
            // systems.
            match family.iter().copied().max() {
                Some(2 | 10 | 24 | 28 | 30) => ip(&bytes[4..]),
                _ => Err(Skipped::NotIp),
            }
        }
        _ => Err(Skipped::Link),
    }
}

/// Returns the IP packet in a packet of this link type, if it has a source address.
pub fn ip_of(link: u32, bytes: &[u8]) -> Option<&[u8]> {
    let (mut kind, mut at) = match link {
        ETHERNET => (half(bytes, 12).ok()?, 14),
        LINUX_COOKED => (half(bytes, 14).ok()?, 16),
        LINUX_COOKED_2 => (half(bytes, 0).ok()?, 20),
        _ if LOOPBACK.contains(&link) => (0, 4),
        _ => (0, 0),
    };
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        kind = half(bytes, at + 2).ok()?;
        at += 4;
    }
    bytes.get(at..)
}

fn half(bytes: &[u8], at: usize) -> Result<u16, Skipped> {
    let [high, low] = *bytes.get(at..at + 2).ok_or(Skipped::Cut)? else { return Err(Skipped::Cut) };
    Ok(u16::from_be_bytes([high, low]))
}

/// Returns the source address of the IP packet in `rest`, the bytes after the EtherType `kind`. Skips VLAN tags.
fn by_type(mut kind: u16, rest: Option<&[u8]>) -> Result<Source, Skipped> {
    let mut rest = rest.ok_or(Skipped::Cut)?;
    while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
        kind = half(rest, 2)?;
        rest = &rest[4..];
    }
    match kind {
        0x0800 | 0x86dd => ip(rest),
        _ => Err(Skipped::NotIp),
    }
}

fn ip(bytes: &[u8]) -> Result<Source, Skipped> {
    match bytes.first().ok_or(Skipped::Cut)? >> 4 {
        4 => bytes.get(..20).map(|head| Source::V4(cut(&head[12..]))).ok_or(Skipped::Cut),
        6 => bytes.get(..40).map(|head| Source::V6(cut(&head[8..]))).ok_or(Skipped::Cut),
        _ => Err(Skipped::NotIp),
    }
}

/// Returns the first `N` bytes, which must exist.
fn cut<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut first = [0; N];
    first.copy_from_slice(&bytes[..N]);
    first
}
