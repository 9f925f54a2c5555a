//! The seam to smoltcp: one interface without a link layer, to which packets of one connection at a time are given.
//!
//! smoltcp looks at every socket of a set for every packet, so each connection has a set of its own; the tables of
//! this crate find the connection. The interface itself is shared: it holds the addresses, the time, and the source
//! of initial sequence numbers.

use crate::clock::Clock;
use crate::spec::StackSpec;
use nicety_types::Time;
use smoltcp::iface::{Config, Interface, SocketSet};
use smoltcp::phy::{self, Checksum, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::cell::Cell;

thread_local! {
    /// The value of the time-stamp option now: smoltcp's generator is a function without arguments.
    static STAMP: Cell<u32> = const { Cell::new(0) };
}

/// The time-stamp clock of all connections, in milliseconds of virtual time.
pub(crate) fn stamp() -> u32 {
    STAMP.get()
}

/// When a socket wants to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Now,
    At(Time),
    Never,
}

pub(crate) struct Engine {
    interface: Interface,
    pub clock: Clock,
    caps: DeviceCapabilities,
    /// Bytes for the frame's header before each packet.
    room: usize,
    /// No socket: what is given to this is answered with a reset or by ICMP.
    nobody: SocketSet<'static>,
}

impl Engine {
    pub fn new(spec: &StackSpec, room: usize) -> Engine {
        let mut caps = DeviceCapabilities::default();
        caps.medium = Medium::Ip;
        caps.max_transmission_unit = spec.mtu;
        // Whatever comes in was verified before it is given to smoltcp.
        caps.checksum = ChecksumCapabilities::ignored();
        if !spec.checksum_offload {
            caps.checksum.tcp = Checksum::Tx;
            caps.checksum.udp = Checksum::Tx;
            caps.checksum.ipv4 = Checksum::Tx;
        }
        caps.checksum.icmpv4 = Checksum::Tx;
        caps.checksum.icmpv6 = Checksum::Tx;
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = spec.seed;
        let mut port = Port { input: None, output: None, caps: &caps };
        let mut interface = Interface::new(config, &mut port, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let v4 = spec.ipv4.map(|n| IpCidr::new(n.address.into(), n.prefix));
            let v6 = spec.ipv6.map(|n| IpCidr::new(n.address.into(), n.prefix));
            // There is room for two.
            addresses.extend(v4.into_iter().chain(v6));
        });
        let clock = Clock::new(spec.min_rto);
        Engine { interface, clock, caps, room, nobody: SocketSet::new(Vec::new()) }
    }

    pub fn context(&mut self) -> &mut smoltcp::iface::Context {
        self.interface.context()
    }

    fn set_time(&self, now: Time) -> Instant {
        STAMP.set((now.ps() / 1_000_000_000) as u32);
        self.clock.instant(now)
    }

    /// Gives a packet to a connection. Whether there is an answer, which is in `reply` behind room for its header.
    pub fn input(
        &mut self,
        now: Time,
        packet: &[u8],
        sockets: &mut SocketSet<'static>,
        reply: &mut Vec<u8>,
    ) -> bool {
        reply.clear();
        let at = self.set_time(now);
        let mut port = Port { input: Some(packet), output: Some((reply, self.room)), caps: &self.caps };
        self.interface.poll_ingress_single(at, &mut port, sockets);
        !reply.is_empty()
    }

    /// Gives a packet to nobody.
    pub fn refuse(&mut self, now: Time, packet: &[u8], reply: &mut Vec<u8>) -> bool {
        let mut nobody = std::mem::replace(&mut self.nobody, SocketSet::new(Vec::new()));
        let answered = self.input(now, packet, &mut nobody, reply);
        self.nobody = nobody;
        answered
    }

    /// Takes a packet from a connection and appends it to `out`, from `at` on. Whether there was one.
    pub fn output(
        &mut self,
        now: Time,
        sockets: &mut SocketSet<'static>,
        out: &mut Vec<u8>,
        at: usize,
    ) -> bool {
        let before = out.len();
        let time = self.set_time(now);
        let mut port = Port { input: None, output: Some((out, at)), caps: &self.caps };
        self.interface.poll_egress(time, &mut port, sockets);
        let sent = port.output.is_none();
        if !sent {
            out.truncate(before);
        }
        sent
    }

    /// Lets timers expire, and takes nothing.
    pub fn expire(&mut self, now: Time, sockets: &mut SocketSet<'static>) {
        let time = self.set_time(now);
        let mut port = Port { input: None, output: None, caps: &self.caps };
        self.interface.poll_egress(time, &mut port, sockets);
    }

    /// Takes what a socket has to send, and forgets it.
    pub fn drop_output(&mut self, now: Time, sockets: &mut SocketSet<'static>) {
        let mut nowhere = Vec::new();
        self.output(now, sockets, &mut nowhere, 0);
    }

    pub fn wish(&mut self, now: Time, sockets: &SocketSet<'static>) -> Wish {
        let at = self.clock.instant(now);
        match self.interface.poll_at(at, sockets) {
            None => Wish::Never,
            Some(due) if due <= at => Wish::Now,
            Some(due) => Wish::At(self.clock.time(due)),
        }
    }
}

/// A device with one packet in, or with room for one packet out.
struct Port<'a> {
    input: Option<&'a [u8]>,
    /// Where the packet goes, and from which byte on.
    output: Option<(&'a mut Vec<u8>, usize)>,
    caps: &'a DeviceCapabilities,
}

impl<'a> phy::Device for Port<'a> {
    type RxToken<'t>
        = Received<'a>
    where
        Self: 't;
    type TxToken<'t>
        = Space<'t, 'a>
    where
        Self: 't;

    fn receive(&mut self, _: Instant) -> Option<(Received<'a>, Space<'_, 'a>)> {
        let input = self.input.take()?;
        Some((Received(input), Space(&mut self.output)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Space<'_, 'a>> {
        self.output.is_some().then_some(Space(&mut self.output))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        self.caps.clone()
    }
}

struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

struct Space<'t, 'a>(&'t mut Option<(&'a mut Vec<u8>, usize)>);

impl phy::TxToken for Space<'_, '_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        // A token is given out only where there is room.
        let (out, at) = self.0.take().expect("room for one packet");
        out.resize(at + len, 0);
        f(&mut out[at..])
    }
}
