//! Compares hashes and checksums with published values.

use crate::net::*;
use nicety_stack::*;
use std::net::{IpAddr, SocketAddr};

#[test]
fn the_hash_is_microsofts() {
    // From "Verifying the RSS hash calculation" in the Windows driver documentation: source, destination, hash with
    // ports, hash without ports.
    let suite: [(&str, &str, u32, u32); 8] = [
        ("66.9.149.187:2794", "161.142.100.80:1766", 0x51ccc178, 0x323e8fc2),
        ("199.92.111.2:14230", "65.69.140.83:4739", 0xc626b0ea, 0xd718262a),
        ("24.19.198.95:12898", "12.22.207.184:38024", 0x5c2b394a, 0xd2d0a5de),
        ("38.27.205.30:48228", "209.142.163.6:2217", 0xafc7327f, 0x82989176),
        ("153.39.163.191:44251", "202.188.127.2:1303", 0x10e828a2, 0x5d1809c5),
        ("[3ffe:2501:200:1fff::7]:2794", "[3ffe:2501:200:3::1]:1766", 0x40207d3d, 0x2cc18cd5),
        ("[3ffe:501:8::260:97ff:fe40:efab]:14230", "[ff02::1]:4739", 0xdde51bbf, 0x0f0c461c),
        (
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            "[fe80::200:f8ff:fe21:67cf]:38024",
            0x02d1feef,
            0x4b61e985,
        ),
    ];
    let hash = Toeplitz::default();
    for (source, destination, with_ports, without) in suite {
        let (source, destination): (SocketAddr, SocketAddr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        let ports = Some((source.port(), destination.port()));
        assert_eq!(hash.hash(source.ip(), destination.ip(), ports), with_ports, "{source}");
        assert_eq!(hash.hash(source.ip(), destination.ip(), None), without, "{source}");
    }
}

#[test]
fn a_frame_is_hashed_by_what_it_has() {
    let mut net = Net::pair();
    net.log = Some(Vec::new());
    let (a, _) = net.connected(80);
    let (own, peer) = net.ends[0].ends(a).unwrap();
    let hash = Toeplitz::default();
    let log = net.log.as_ref().unwrap();
    assert_eq!(hash.frame(&log[0].1), Ok(0), "ARP");
    let ports = Some((own.port(), peer.port()));
    assert_eq!(hash.frame(&log[2].1), Ok(hash.hash(own.ip(), peer.ip(), ports)));
    assert_eq!(hash.frame(&[0; 13]), Err(Malformed::Truncated));
}

#[test]
fn a_checksum_is_the_one_worked_out_by_hand() {
    // RFC 1071's method over 45 00 00 1c, 00 00 40 00, 40 11 csum, 0a 00 00 01, 0a 00 00 02. The sum is 0xd930, and its
    // complement 0x26cf.
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 0x1c, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    fill(&mut frame).unwrap();
    assert_eq!(frame[24..26], [0x26, 0xcf]);
    // The pseudo-header adds 0a000001, 0a000002, 0011 and 0008; the datagram adds 0007, 0009 and 0008. The sum is
    // 0x1434, and the checksum its complement.
    assert_eq!(frame[40..42], [0xeb, 0xcb]);
    let ip = Parsed::read(&frame).unwrap().ip.unwrap();
    assert!(verify(&frame, &ip));
    assert_eq!(ip.source, IpAddr::from([10, 0, 0, 1]));
    for bit in 0..(frame.len() - 14) * 8 {
        let mut other = frame.clone();
        other[14 + bit / 8] ^= 1 << (bit % 8);
        let seen = Parsed::read(&other).ok().and_then(|parsed| parsed.ip);
        assert!(seen.is_none_or(|ip| !verify(&other, &ip)), "bit {bit}");
    }
}
