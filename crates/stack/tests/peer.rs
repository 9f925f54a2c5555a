//! Connects a stack to an independent TCP: smoltcp.

use crate::net::*;
use nicety_stack::*;
use nicety_types::Time;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;

/// Queues of packets to smoltcp and from smoltcp.
#[derive(Default)]
struct Wire {
    input: VecDeque<Vec<u8>>,
    output: VecDeque<Vec<u8>>,
}

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
        let packet = self.input.pop_front()?;
        Some((In(packet), Out(&mut self.output)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Out<'_>> {
        Some(Out(&mut self.output))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        (caps.medium, caps.max_transmission_unit) = (Medium::Ip, 1500);
        caps
    }
}

/// Sends `bytes` from each end to the other, and closes the connection. The network loses `lost` frames per million of
/// those that this crate's stack sends. Returns the number of retransmissions.
fn exchange(bytes: usize, lost: u32, timestamps: bool) -> u64 {
    let mut stack = Stack::new(StackSpec { timestamps, ..spec(1) }).unwrap();
    stack.add_neighbour(at(2, 0).ip(), [2, 0, 0, 0, 0, 2]);
    let mut wire = Wire::default();
    let mut interface = Interface::new(Config::new(HardwareAddress::Ip), &mut wire, Instant::ZERO);
    interface.update_ip_addrs(|own| own.push(IpCidr::new(IpAddress::v4(10, 0, 0, 2), 24)).unwrap());
    let buffer = || SocketBuffer::new(vec![0; 70_000]);
    let mut sockets = SocketSet::new(Vec::new());
    let mut socket = Socket::new(buffer(), buffer());
    if timestamps {
        socket.set_tsval_generator(Some(|| 7));
    }
    socket.listen(80).unwrap();
    let handle = sockets.add(socket);
    let (mut now, mut draw) = (Time::ZERO, Draw(9));
    let id = stack.connect(now, at(2, 80), None, &plain()).unwrap();
    let (forth, back) = (pattern(1, bytes), pattern(2, bytes));
    let (mut sent, mut got, mut their_sent, mut their_got) = (0, Vec::<u8>::new(), 0, Vec::<u8>::new());
    let (mut frame, mut room, mut shut, mut their_shut) = (Vec::new(), vec![0; 70_000], false, false);
    while stack.connections() > 0 || sockets.get::<Socket>(handle).is_open() {
        assert!(
            now < Time::from_ps(us(100_000_000).ps()),
            "{} and {} of {bytes}",
            got.len(),
            their_got.len()
        );
        now += us(100);
        stack.on_timer(now);
        if sent < bytes {
            sent += stack.send(now, id, &forth[sent..]).unwrap_or(0);
        } else if !shut {
            shut = stack.shutdown(now, id).is_ok();
        }
        while let Ok(n @ 1..) = stack.recv(now, id, &mut room) {
            got.extend(&room[..n]);
        }
        let socket = sockets.get_mut::<Socket>(handle);
        if their_sent < bytes {
            their_sent += socket.send_slice(&back[their_sent..]).unwrap_or(0);
        } else if !their_shut && their_got.len() == bytes {
            socket.close();
            their_shut = true;
        }
        while let Ok(n @ 1..) = socket.recv_slice(&mut room) {
            their_got.extend(&room[..n]);
        }
        while let Some(source) = stack.next_ready() {
            while stack.transmit(now, source, &mut frame).is_some() {
                if !draw.hits(lost) {
                    wire.input.push_back(frame[14..].to_vec());
                }
            }
        }
        interface.poll(Instant::from_micros((now.ps() / 1_000_000) as i64), &mut wire, &mut sockets);
        for packet in wire.output.drain(..) {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            frame.extend(packet);
            assert_eq!(stack.receive(now, &frame, ChecksumStatus::Unknown).dropped, None);
        }
        if got.len() == bytes && their_got.len() == bytes && shut && stack.next_event().is_none() {
            let _ = stack.close(now, id);
        }
    }
    assert!(got == back && their_got == forth);
    stack.counters().retransmissions
}

#[test]
fn another_tcp_understands_this_one() {
    for timestamps in [false, true] {
        assert_eq!(exchange(300_000, 0, timestamps), 0);
        assert!(exchange(300_000, 30_000, timestamps) > 0);
    }
}
