//! Simulates hosts on a network that loses, repeats, delays and damages frames, in virtual time.

use nicety_stack::*;
use nicety_types::{Duration, Time};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The rate of each kind of fault, in frames per million.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u32,
    pub repeated: u32,
    pub late: u32,
    pub damaged: u32,
}

/// A generator of random numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
    pub fn hits(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }
}

/// Returns true if the network loses a frame. The arguments are the sender's index and the frame.
type Filter = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub struct Net {
    pub ends: Vec<Stack>,
    pub now: Time,
    /// Maps arrival time and order to the receiver's index and the frame, for frames in flight.
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
    idle: u32,
    pub delay: Duration,
    /// Picoseconds per byte, and the time from which each host's link is free.
    pub gap: u64,
    free: Vec<Time>,
    pub faults: Faults,
    pub draw: Draw,
    /// Log of sent frames with the sender's index, without faults of the network.
    pub log: Option<Vec<(usize, Vec<u8>)>>,
    pub events: Vec<(usize, Event)>,
    pub arrivals: Vec<(usize, Arrival)>,
    pub keep_arrivals: bool,
    /// An additional rule for the loss of frames.
    pub filter: Option<Filter>,
    /// If set, cards coalesce frames of one flow that arrive together. The value is the maximum size of a packet in
    /// bytes.
    pub lro: Option<usize>,
}

pub fn spec(n: u8) -> StackSpec {
    let ipv4 = Network { address: Ipv4Addr::new(10, 0, 0, n), prefix: 24, gateway: None };
    let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n));
    let ipv6 = Network { address, prefix: 64, gateway: None };
    StackSpec {
        mac: [2, 0, 0, 0, 0, n],
        ipv4: Some(ipv4),
        ipv6: Some(ipv6),
        time_wait: us(2_000_000),
        seed: u64::from(n),
        ..StackSpec::default()
    }
}

/// The address of host `n`: the hosts of a [`Net`] count from 1.
pub fn at(n: u8, port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, n), port))
}

pub fn at6(n: u8, port: u16) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)), port))
}

pub fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// Default options.
pub fn plain() -> Options {
    Options::default()
}

impl Net {
    pub fn of(specs: impl IntoIterator<Item = StackSpec>) -> Net {
        let ends: Vec<_> = specs.into_iter().map(|spec| Stack::new(spec).unwrap()).collect();
        Net {
            free: vec![Time::ZERO; ends.len()],
            ends,
            now: Time::ZERO,
            flying: BTreeMap::new(),
            count: 0,
            idle: 0,
            delay: us(10),
            gap: 0,
            faults: Faults::default(),
            draw: Draw(1),
            log: None,
            events: Vec::new(),
            arrivals: Vec::new(),
            keep_arrivals: true,
            filter: None,
            lro: None,
        }
    }

    pub fn pair() -> Net {
        Net::of([spec(1), spec(2)])
    }

    /// Sends all frames that are ready.
    pub fn pump(&mut self) {
        let (mut frame, mut turns) = (Vec::new(), 0);
        for from in 0..self.ends.len() {
            while let Some(source) = self.ends[from].next_ready() {
                turns += 1;
                assert!(turns < 100_000, "{source:?} of host {from} is ready without end");
                let mut frames = 0;
                while let Some(sent) = self.ends[from].transmit(self.now, source, &mut frame) {
                    frames += 1;
                    assert!(frames < 100_000, "{source:?} of host {from} sends without end");
                    match sent.segment {
                        Some(size) => {
                            let mut cut = Vec::new();
                            segment(&frame, size, |piece| cut.push(piece.to_vec())).unwrap();
                            cut.into_iter().for_each(|piece| self.launch(from, piece));
                        }
                        None => {
                            if sent.needs_checksum {
                                fill(&mut frame).unwrap();
                            }
                            self.launch(from, frame.clone());
                        }
                    }
                }
            }
            while let Some(event) = self.ends[from].next_event() {
                self.events.push((from, event));
            }
        }
    }

    fn launch(&mut self, from: usize, mut frame: Vec<u8>) {
        if let Some(log) = &mut self.log {
            log.push((from, frame.clone()));
        }
        self.free[from] = self.free[from].max(self.now) + Duration::from_ps(self.gap * frame.len() as u64);
        let faults = self.faults;
        if self.draw.hits(faults.lost) || self.filter.as_mut().is_some_and(|lose| lose(from, &frame)) {
            return;
        }
        // ARP packets are not damaged. ARP has no checksum, so the stack could not detect the damage.
        if self.draw.hits(faults.damaged) && frame[12..14] != [8, 6] {
            let bit = self.draw.below(frame.len() as u64 * 8) as usize;
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        let copies = 1 + u64::from(self.draw.hits(faults.repeated));
        let to = if frame[0] & 1 != 0 {
            (0..self.ends.len()).filter(|&n| n != from).collect()
        } else {
            vec![usize::from(frame[5]).wrapping_sub(1)]
        };
        for _ in 0..copies {
            let late = if self.draw.hits(faults.late) { us(self.draw.below(200)) } else { Duration::ZERO };
            for &to in to.iter().filter(|&&to| to < self.ends.len()) {
                self.count += 1;
                let when = self.free[from] + self.delay + late;
                self.flying.insert((when, self.count), (to, frame.clone()));
            }
        }
    }

    fn next_time(&mut self) -> Option<Time> {
        let frame = self.flying.keys().next().map(|key| key.0);
        let timers = self.ends.iter_mut().filter_map(Stack::next_timer);
        frame.into_iter().chain(timers).min()
    }

    /// Processes the next event. Returns false if there is none before `until`.
    pub fn step(&mut self, until: Time) -> bool {
        self.pump();
        let Some(next) = self.next_time().filter(|&next| next <= until) else { return false };
        self.idle = if next > self.now { 0 } else { self.idle + 1 };
        assert!(self.idle < 100_000, "time stands still at {}", self.now.ns());
        self.now = next.max(self.now);
        let mut held: Vec<(usize, Vec<u8>, ChecksumStatus)> = Vec::new();
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            // A card that coalesces frames verifies their checksums first.
            let status = match self.lro.and_then(|_| Parsed::read(&frame).ok()?.ip) {
                Some(ip) if verify(&frame, &ip) => ChecksumStatus::Good,
                _ => ChecksumStatus::Unknown,
            };
            if let (Some(most), Some((last, joined, ChecksumStatus::Good))) = (self.lro, held.last_mut())
                && *last == to
                && status == ChecksumStatus::Good
                && coalesce(joined, &frame, most)
            {
                continue;
            }
            held.push((to, frame, status));
        }
        for (to, frame, status) in held {
            let arrival = self.ends[to].receive(self.now, &frame, status);
            if self.keep_arrivals {
                self.arrivals.push((to, arrival));
            }
        }
        for end in &mut self.ends {
            end.on_timer(self.now);
        }
        self.pump();
        true
    }

    /// Advances the clock by `time`, and processes all events until then.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Opens a listener at a port of host 2, and connects host 1 to it.
    pub fn connected(&mut self, port: u16) -> (ConnectionId, ConnectionId) {
        self.connected_with(port, at(2, port), &plain(), &plain())
    }

    pub fn connected_with(
        &mut self,
        port: u16,
        to: SocketAddr,
        own: &Options,
        peer: &Options,
    ) -> (ConnectionId, ConnectionId) {
        let listener = self.ends[1].listen(port, 4, peer).unwrap();
        let client = self.ends[0].connect(self.now, to, None, own).unwrap();
        self.run(us(1000));
        assert!(self.took(0, Event::Connected(client)));
        assert!(self.took(1, Event::Incoming(listener)));
        let server = self.ends[1].accept(listener).unwrap();
        (client, server)
    }

    /// Removes an event from the log. Returns whether it was there.
    pub fn took(&mut self, end: usize, event: Event) -> bool {
        let found = self.events.iter().position(|&e| e == (end, event));
        found.map(|i| self.events.remove(i)).is_some()
    }

    pub fn send(&mut self, end: usize, id: ConnectionId, bytes: &[u8]) -> Result<usize, Error> {
        let now = self.now;
        self.ends[end].send(now, id, bytes)
    }

    pub fn recv(&mut self, end: usize, id: ConnectionId) -> Result<Vec<u8>, Error> {
        let now = self.now;
        let mut bytes = vec![0; self.ends[end].readable(id)?.max(1)];
        let n = self.ends[end].recv(now, id, &mut bytes)?;
        bytes.truncate(n);
        Ok(bytes)
    }

    pub fn shutdown(&mut self, end: usize, id: ConnectionId) {
        let now = self.now;
        self.ends[end].shutdown(now, id).unwrap();
    }

    pub fn close(&mut self, end: usize, id: ConnectionId) {
        let now = self.now;
        self.ends[end].close(now, id).unwrap();
    }

    /// Transfers bytes in both directions, so that both congestion windows grow.
    pub fn warm(&mut self, a: ConnectionId, b: ConnectionId) {
        self.transfer((0, a), (1, b), &pattern(8, 200_000), us(10_000_000));
        self.transfer((1, b), (0, a), &pattern(9, 200_000), us(10_000_000));
        self.run(us(100_000));
        if let Some(log) = &mut self.log {
            log.clear();
        }
        self.arrivals.clear();
    }

    /// Sends all bytes from one end and reads them at the other. Panics at the timeout.
    pub fn transfer(
        &mut self,
        from: (usize, ConnectionId),
        to: (usize, ConnectionId),
        bytes: &[u8],
        time: Duration,
    ) {
        let until = self.now + time;
        let (mut sent, mut got) = (0, Vec::new());
        while got.len() < bytes.len() {
            if sent < bytes.len()
                && let Ok(n) = self.send(from.0, from.1, &bytes[sent..])
            {
                sent += n;
            }
            if let Ok(more) = self.recv(to.0, to.1) {
                got.extend(more);
            }
            if got.len() < bytes.len() {
                assert!(
                    self.step(until),
                    "stuck at {} with {} of {} bytes",
                    self.now.ns(),
                    got.len(),
                    bytes.len()
                );
            }
        }
        assert!(got == bytes, "bytes differ");
    }

    /// Returns logged segments: the sender's index, and the header with the length of the payload.
    pub fn segments(&self) -> Vec<(usize, TcpHeader, usize)> {
        let log = self.log.as_ref().unwrap().iter();
        log.filter_map(|(from, frame)| {
            let ip = Parsed::read(frame).unwrap().ip.filter(|ip| ip.protocol == 6)?;
            let tcp = TcpHeader::read(&frame[ip.payload.clone()]).unwrap();
            Some((*from, tcp, ip.payload.len() - tcp.length))
        })
        .collect()
    }
}

/// Returns pseudo-random bytes, different for each seed.
pub fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let mut draw = Draw(seed);
    (0..bytes).map(|_| draw.next() as u8).collect()
}
