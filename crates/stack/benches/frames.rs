//! Measures the CPU time per frame of a connection between two stacks, and compares it with two interfaces of smoltcp.
//! Run it with `cargo bench -p nicety-stack`.

use cpu_time::ThreadTime;
use nicety_stack::*;
use nicety_types::{Duration, Time};
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const CONNECTIONS: usize = 32;
const CHUNK: usize = 64 << 10;
const BYTES: usize = 200 << 20;

fn host(n: u8, tso: bool) -> Stack {
    let ipv4 = Network { address: Ipv4Addr::new(10, 0, 0, n), prefix: 24, gateway: None };
    let spec = StackSpec {
        mac: [2, 0, 0, 0, 0, n],
        ipv4: Some(ipv4),
        checksum_offload: tso,
        tso: tso.then_some(65535),
        ..StackSpec::default()
    };
    let mut stack = Stack::new(spec).expect("a spec that can be");
    let other = 3 - n;
    stack.add_neighbour(IpAddr::from([10, 0, 0, other]), [2, 0, 0, 0, 0, other]);
    stack
}

/// Exchanges frames until none are left.
fn exchange(
    ends: &mut [Stack; 2],
    now: &mut Time,
    frames: &mut u64,
    frame: &mut Vec<u8>,
    good: ChecksumStatus,
) {
    loop {
        let mut quiet = true;
        for from in [0, 1] {
            while let Some(source) = ends[from].next_ready() {
                while ends[from].transmit(*now, source, frame).is_some() {
                    *now += Duration::from_ns(1200);
                    ends[1 - from].receive(*now, frame, good);
                    (*frames, quiet) = (*frames + 1, false);
                }
            }
            while ends[from].next_event().is_some() {}
        }
        if quiet {
            return;
        }
    }
}

/// Transfers bytes between two of this crate's stacks. Returns the number of frames, and the CPU time in nanoseconds.
fn ours(tso: bool) -> (u64, f64) {
    let mut ends = [host(1, tso), host(2, tso)];
    let good = if tso { ChecksumStatus::Good } else { ChecksumStatus::Unknown };
    let (mut now, mut frames, mut frame) = (Time::ZERO, 0, Vec::new());
    let listener = ends[1].listen(80, CONNECTIONS, &Options::default()).expect("a free port");
    let to = SocketAddr::from(([10, 0, 0, 2], 80));
    let clients: Vec<_> = (0..CONNECTIONS)
        .map(|_| ends[0].connect(now, to, None, &Options::default()).expect("room"))
        .collect();
    exchange(&mut ends, &mut now, &mut frames, &mut frame, good);
    let servers: Vec<_> = (0..CONNECTIONS).map(|_| ends[1].accept(listener).expect("established")).collect();
    let (data, mut sink, mut got) = (vec![7; CHUNK], vec![0; CHUNK], 0);
    frames = 0;
    let start = ThreadTime::now();
    while got < BYTES {
        let before = got;
        for (&client, &server) in clients.iter().zip(&servers) {
            let _ = ends[0].send(now, client, &data);
            exchange(&mut ends, &mut now, &mut frames, &mut frame, good);
            while let Ok(n) = ends[1].recv(now, server, &mut sink) {
                got += n;
            }
        }
        // No frame is left. The next progress needs a timer, such as a delayed acknowledgement.
        if got == before {
            now =
                ends.iter_mut().filter_map(Stack::next_timer).min().expect("something to wait for").max(now);
            ends.iter_mut().for_each(|end| end.on_timer(now));
            exchange(&mut ends, &mut now, &mut frames, &mut frame, good);
        }
    }
    (frames, start.elapsed().as_nanos() as f64)
}

/// One end of a wire, for smoltcp alone.
#[derive(Default)]
struct Wire {
    input: VecDeque<Vec<u8>>,
    output: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
}

struct In<'a>(Vec<u8>, &'a mut Vec<Vec<u8>>);
struct Out<'a>(&'a mut VecDeque<Vec<u8>>, Vec<u8>);

impl RxToken for In<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(&self.0);
        self.1.push(self.0);
        result
    }
}

impl TxToken for Out<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, len: usize, f: F) -> R {
        self.1.resize(len, 0);
        let result = f(&mut self.1);
        self.0.push_back(self.1);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = In<'a>;
    type TxToken<'a> = Out<'a>;
    fn receive(&mut self, _: Instant) -> Option<(In<'_>, Out<'_>)> {
        let frame = self.input.pop_front()?;
        Some((In(frame, &mut self.spare), Out(&mut self.output, Vec::new())))
    }
    fn transmit(&mut self, _: Instant) -> Option<Out<'_>> {
        let room = self.spare.pop().unwrap_or_default();
        Some(Out(&mut self.output, room))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut caps = DeviceCapabilities::default();
        (caps.medium, caps.max_transmission_unit) = (Medium::Ip, 1500);
        caps
    }
}

/// One connection between two of smoltcp's interfaces: its best case.
fn alone() -> (u64, f64) {
    let mut wires = [Wire::default(), Wire::default()];
    let mut ends: Vec<_> = (0..2u8)
        .map(|n| {
            let mut interface =
                Interface::new(Config::new(HardwareAddress::Ip), &mut wires[usize::from(n)], Instant::ZERO);
            let own = IpCidr::new(IpAddress::v4(10, 0, 0, n + 1), 24);
            interface.update_ip_addrs(|addresses| addresses.push(own).expect("room for two"));
            let buffer = || SocketBuffer::new(vec![0; 256 << 10]);
            let mut sockets = SocketSet::new(Vec::new());
            let handle = sockets.add(Socket::new(buffer(), buffer()));
            (interface, sockets, handle)
        })
        .collect();
    let (interface, sockets, handle) = &mut ends[0];
    let to = (IpAddress::v4(10, 0, 0, 2), 80);
    sockets.get_mut::<Socket>(*handle).connect(interface.context(), to, 5000).expect("an address");
    let (_, sockets, handle) = &mut ends[1];
    sockets.get_mut::<Socket>(*handle).listen(80).expect("a port");
    let (data, mut sink, mut got, mut frames, mut micros) = (vec![7; CHUNK], vec![0; CHUNK], 0, 0, 0i64);
    let start = ThreadTime::now();
    while got < BYTES {
        let (_, sockets, handle) = &mut ends[0];
        let _ = sockets.get_mut::<Socket>(*handle).send_slice(&data);
        for end in 0..2 {
            micros += 20;
            let (interface, sockets, _) = &mut ends[end];
            interface.poll(Instant::from_micros(micros), &mut wires[end], sockets);
            frames += wires[end].output.len() as u64;
            let moved = std::mem::take(&mut wires[end].output);
            wires[1 - end].input.extend(moved);
        }
        let (_, sockets, handle) = &mut ends[1];
        while let Ok(n) = sockets.get_mut::<Socket>(*handle).recv_slice(&mut sink)
            && n > 0
        {
            got += n;
        }
    }
    (frames, start.elapsed().as_nanos() as f64)
}

fn main() {
    let best = |run: &dyn Fn() -> (u64, f64)| {
        let runs = (0..3).map(|_| run());
        runs.map(|(frames, ns)| (ns / frames as f64, frames))
            .fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
    };
    let (bare, bare_frames) = best(&alone);
    println!(
        "smoltcp alone, one connection, both ends          {bare:8.1} ns a frame ({bare_frames} frames)"
    );
    for (what, tso) in [("without offloads", false), ("with TSO", true)] {
        let (ns, frames) = best(&|| ours(tso));
        let seconds = ns * frames as f64 * 1e-9 * (9e9 / 8.0) / BYTES as f64;
        println!(
            "{CONNECTIONS} connections, {what:18} both ends      {ns:8.1} ns a frame, {:.2} of that; 1 s at 9 Gb/s: {seconds:.2} s",
            ns / bare
        );
    }
}
