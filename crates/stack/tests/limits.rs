//! Tests the limits of a stack, and the errors beyond these limits.

use crate::net::*;
use nicety_stack::*;

#[test]
fn a_spec_that_cannot_be_is_refused() {
    let cases: [(StackSpec, &str); 12] = [
        (StackSpec { mtu: 67, ipv6: None, ..spec(1) }, "mtu: 67 is too small, IPv4 needs 68 bytes at least"),
        (StackSpec { mtu: 1279, ..spec(1) }, "mtu: 1279 is too small, IPv6 needs 1280 bytes at least"),
        (
            StackSpec { mtu: 65536, ..spec(1) },
            "mtu: 65536 is too large, an IP packet has 65535 bytes at most",
        ),
        (StackSpec { ipv4: None, ipv6: None, ..spec(1) }, "a host needs an IPv4 or an IPv6 address"),
        (
            StackSpec { mac: [1; 6], ..spec(1) },
            "mac: write the address of one station, not a group address or zero",
        ),
        (StackSpec { vlan: Some(4095), ..spec(1) }, "vlan: 1 to 4094"),
        (StackSpec { min_rto: us(0), ..spec(1) }, "min_rto: 1 us to 60 s"),
        (
            StackSpec { tso: Some(1000), checksum_offload: true, ..spec(1) },
            "tso: from the mtu to 65535 bytes",
        ),
        (
            StackSpec { tso: Some(65535), ..spec(1) },
            "tso: a card that cuts segments computes their checksums, so set checksum_offload",
        ),
        (StackSpec { send_buffer: 0, ..spec(1) }, "send_buffer: a buffer has 1 byte to 1 GiB"),
        (StackSpec { connections: 0, ..spec(1) }, "connections: 1 to 1048576"),
        (
            StackSpec {
                ipv4: spec(1).ipv4.map(|n| Network { address: std::net::Ipv4Addr::BROADCAST, ..n }),
                ..spec(1)
            },
            "an interface has the address of one host, with the prefix length of its network",
        ),
    ];
    for (spec, text) in cases {
        assert_eq!(Stack::new(spec).err().map(|e| e.to_string()).as_deref(), Some(text));
    }
}

#[test]
fn a_port_in_use_is_refused() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    let listen = |net: &mut Net, end: usize, port| net.ends[end].listen(port, 1, &plain());
    assert_eq!(listen(&mut net, 1, 80), Err(Error::AddressInUse));
    let port = net.ends[0].ends(a).unwrap().0.port();
    assert_eq!(listen(&mut net, 0, port), Err(Error::AddressInUse));
    let now = net.now;
    assert_eq!(net.ends[0].connect(now, at(2, 80), Some(port), &plain()), Err(Error::AddressInUse));
    assert_eq!(net.ends[1].connect(now, at(1, 80), Some(80), &plain()), Err(Error::AddressInUse));
    assert_eq!(listen(&mut net, 0, 0), Err(Error::Invalid));
    let _ = b;
}

#[test]
fn no_more_connections_than_places_and_memory() {
    let small = Options { send_buffer: Some(1000), receive_buffer: Some(1000), ..plain() };
    let mut net = Net::of([StackSpec { connections: 2, ..spec(1) }, StackSpec { memory: 5000, ..spec(2) }]);
    net.ends[1].listen(80, 9, &small).unwrap();
    let now = net.now;
    let connect = |net: &mut Net, end: usize| net.ends[end].connect(now, at(2 - end as u8, 80), None, &small);
    let ids = [connect(&mut net, 0).unwrap(), connect(&mut net, 0).unwrap()];
    assert_eq!(connect(&mut net, 0), Err(Error::NoBufferSpace), "two places");
    net.run(us(1000));
    assert_eq!(net.ends[1].connections(), 2);
    assert_eq!(connect(&mut net, 1), Err(Error::NoBufferSpace), "5000 bytes are two of 2000");
    net.close(0, ids[0]);
    net.run(us(1000));
    assert_eq!(connect(&mut net, 0).err(), Some(Error::NoBufferSpace), "it waits for the peer's end");
}

#[test]
fn a_peer_without_memory_drops_connections() {
    let mut net = Net::of([spec(1), StackSpec { memory: 600_000, ..spec(2) }]);
    net.ends[1].listen(80, 9, &plain()).unwrap();
    for _ in 0..2 {
        net.ends[0].connect(net.now, at(2, 80), None, &plain()).unwrap();
    }
    net.run(us(1000));
    assert_eq!((net.ends[1].connections(), net.ends[1].counters().drops(Drop::Backlog)), (1, 1));
}

#[test]
fn a_closed_handle_is_bad_for_everything() {
    let mut net = Net::pair();
    let (a, _) = net.connected(80);
    net.close(0, a);
    let (now, end) = (net.now, &mut net.ends[0]);
    assert_eq!(end.send(now, a, b"x"), Err(Error::BadHandle));
    assert_eq!(end.recv(now, a, &mut [0; 8]), Err(Error::BadHandle));
    assert_eq!(end.shutdown(now, a), Err(Error::BadHandle));
    assert_eq!(end.close(now, a), Err(Error::BadHandle));
    assert_eq!(end.abort(now, a), Err(Error::BadHandle));
    assert_eq!(end.set_nodelay(now, a, true), Err(Error::BadHandle));
    assert_eq!(end.readable(a), Err(Error::BadHandle));
    assert_eq!(end.ends(a), Err(Error::BadHandle));
}

#[test]
fn addresses_that_are_no_hosts_are_refused() {
    let mut net = Net::pair();
    let now = net.now;
    for (to, error) in [
        ("0.0.0.0:80", Error::Invalid),
        ("10.0.0.2:0", Error::Invalid),
        ("224.0.0.1:80", Error::Invalid),
        ("[::]:80", Error::Invalid),
        ("10.0.0.1:80", Error::NetworkUnreachable),
        ("11.0.0.1:80", Error::NetworkUnreachable),
        ("[fd01::1]:80", Error::NetworkUnreachable),
    ] {
        assert_eq!(net.ends[0].connect(now, to.parse().unwrap(), None, &plain()), Err(error), "{to}");
    }
    let wide = Options { receive_buffer: Some(0), ..plain() };
    assert_eq!(net.ends[0].connect(now, at(2, 80), None, &wide), Err(Error::Invalid));
}

#[test]
fn errors_have_their_usual_names() {
    assert_eq!(Error::AddressInUse.to_string(), "address already in use");
    assert_eq!(Error::ConnectionRefused.to_string(), "connection refused");
}
