#!/usr/bin/env bash
# Guess: with selective acknowledgements allowed by both ends, two segments lost in one window are sent again within some
#        round trips.
# From:  RFC 6675, and RFC 6582 for a sender without them: an acknowledgement of a part names the next loss. smoltcp
#        sends the option SACK-permitted in its SYN, and ranges in its acknowledgements.
# True:  smoltcp's sender reads no ranges and has no partial acknowledgements. The second loss waits for the
#        retransmission timeout, which is a second or more (RFC 6298), though a round trip is 10 ms here.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "losses"
edition = "2024"

[dependencies.smoltcp]
version = "=0.14.0"
default-features = false
features = ["std", "medium-ip", "proto-ipv4", "socket-tcp", "socket-tcp-reno"]

[workspace]
TOML
cat >src/main.rs <<'RUST'
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Packet, TcpPacket, TcpRepr};
use std::collections::VecDeque;

#[derive(Default)]
struct Wire(VecDeque<Vec<u8>>, VecDeque<Vec<u8>>);
struct In(Vec<u8>);
struct Out<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for In {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = In;
    type TxToken<'a> = Out<'a>;
    fn receive(&mut self, _: Instant) -> Option<(In, Out<'_>)> {
        Some((In(self.0.pop_front()?), Out(&mut self.1)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Out<'_>> {
        Some(Out(&mut self.1))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        (caps.medium, caps.max_transmission_unit) = (Medium::Ip, 1500);
        caps
    }
}

struct End(Wire, Interface, SocketSet<'static>, SocketHandle);

fn end(last: u8) -> End {
    let mut wire = Wire::default();
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Instant::ZERO);
    interface.update_ip_addrs(|own| own.push(IpCidr::new(IpAddress::v4(10, 0, 0, last), 24)).unwrap());
    let buffer = || SocketBuffer::new(vec![0; 60_000]);
    let mut socket = Socket::new(buffer(), buffer());
    socket.set_congestion_control(CongestionControl::Reno);
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    End(wire, interface, sockets, handle)
}

/// Sends 200 kB over 5 ms each way, and loses data segments by their numbers from 1. Gives the time in ms, the SYNs that allow
/// selective acknowledgements, and the ranges that acknowledgements had.
fn transfer(lost: &[usize]) -> (i64, usize, usize) {
    let mut ends = [end(1), end(2)];
    ends[1].2.get_mut::<Socket>(ends[1].3).listen(80).unwrap();
    {
        let End(_, interface, sockets, handle) = &mut ends[0];
        let socket = sockets.get_mut::<Socket>(*handle);
        socket.connect(interface.context(), (IpAddress::v4(10, 0, 0, 2), 80), 4000).unwrap();
    }
    let (mut sent, mut got, mut segments, mut permitted, mut ranges) = (0, 0, 0, 0, 0);
    let mut way: VecDeque<(i64, usize, Vec<u8>)> = VecDeque::new();
    for now in 0..100_000 {
        while way.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, to, packet) = way.pop_front().unwrap();
            ends[to].0.0.push_back(packet);
        }
        for from in 0..2 {
            let End(wire, interface, sockets, handle) = &mut ends[from];
            interface.poll(Instant::from_millis(now), wire, sockets);
            let socket = sockets.get_mut::<Socket>(*handle);
            if from == 0 && socket.can_send() {
                sent += socket.send_slice(&[7; 60_000][..(200_000 - sent).min(60_000)]).unwrap();
            } else if from == 1 && socket.can_recv() {
                got += socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap();
            }
            interface.poll(Instant::from_millis(now), wire, sockets);
            while let Some(packet) = wire.1.pop_front() {
                let ip = Ipv4Packet::new_checked(&packet[..]).unwrap();
                let tcp = TcpPacket::new_checked(ip.payload()).unwrap();
                let repr = TcpRepr::parse(&tcp, &ip.src_addr().into(), &ip.dst_addr().into(), &Default::default()).unwrap();
                permitted += usize::from(tcp.syn() && repr.sack_permitted);
                ranges += repr.sack_ranges.iter().flatten().count();
                if from == 0 && !tcp.payload().is_empty() {
                    segments += 1;
                    if lost.contains(&segments) {
                        continue;
                    }
                }
                way.push_back((now + 5, 1 - from, packet));
            }
        }
        if got == 200_000 {
            return (now, permitted, ranges);
        }
    }
    panic!("it does not end");
}

fn main() {
    for lost in [&[][..], &[30], &[30, 33]] {
        let (ms, permitted, ranges) = transfer(lost);
        println!("{} lost: {ms} ms, SACK permitted in {permitted} SYNs, {ranges} ranges", lost.len());
    }
}
RUST
cargo run --quiet --target-dir target >out
grep -A 1 'name = "smoltcp"' Cargo.lock
cat out
cat >expected <<'TEXT'
0 lost: 185 ms, SACK permitted in 2 SYNs, 0 ranges
1 lost: 315 ms, SACK permitted in 2 SYNs, 6 ranges
2 lost: 1355 ms, SACK permitted in 2 SYNs, 6 ranges
TEXT
cmp out expected || { echo "changed: the times differ from those seen" >&2; exit 1; }
