//! Random hosts, streams and networks: every byte arrives, and every connection ends.

use crate::net::*;
use nicety_stack::*;
use nicety_types::Time;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Case {
    faults: Faults,
    seed: u64,
    /// For each connection: bytes from host 1 to host 2, and bytes in the other direction. The flags say whether host 1
    /// closes only after the peer, and whether the connection uses IPv6.
    streams: Vec<(usize, usize, bool, bool)>,
    buffers: (usize, usize),
    mtu: usize,
    min_rto_us: u64,
    delayed_ack_us: Option<u64>,
    ack_segments: u8,
    tso: bool,
    timestamps: bool,
    loss_probe: bool,
    nodelay: bool,
    sack: bool,
    cubic: bool,
    lro: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    let rate = |most| prop_oneof![1 => Just(0), 3 => 0..most];
    let faults = (rate(100_000u32), rate(100_000), rate(300_000), rate(50_000))
        .prop_map(|(lost, repeated, late, damaged)| Faults { lost, repeated, late, damaged });
    let size = || prop_oneof![Just(0), 1..200usize, 1000..40_000usize];
    let streams = prop::collection::vec((size(), size(), any::<bool>(), any::<bool>()), 1..5);
    let buffer = || prop_oneof![1 => 1..20usize, 3 => 1000..5000usize, 3 => Just(70_000)];
    let mtu = prop_oneof![Just(1500), Just(9000), 1280..2000usize];
    (
        (faults, any::<u64>(), streams, (buffer(), buffer()), mtu),
        (500..300_000u64, prop::option::of(0..50_000u64), prop_oneof![2 => Just(2), 1 => 3..=16u8]),
        any::<[bool; 7]>(),
    )
        .prop_map(
            |((faults, seed, streams, buffers, mtu), (min_rto_us, delayed_ack_us, ack_segments), flags)| {
                Case {
                    faults,
                    seed,
                    streams,
                    buffers,
                    mtu,
                    min_rto_us,
                    delayed_ack_us,
                    ack_segments,
                    tso: flags[0],
                    timestamps: flags[1],
                    loss_probe: flags[2],
                    nodelay: flags[3],
                    // SACK is on in three of four cases, because hosts usually use it.
                    sack: flags[4] || flags[0],
                    cubic: flags[5],
                    lro: flags[6],
                }
            },
        )
}

/// One end of one stream.
struct Flow {
    end: usize,
    id: Option<ConnectionId>,
    send: Vec<u8>,
    sent: usize,
    shut: bool,
    expect: Vec<u8>,
    got: Vec<u8>,
    finished: bool,
    /// Whether this end closes only after the peer's FIN has arrived.
    last: bool,
    closed: bool,
}

impl Flow {
    fn step(&mut self, net: &mut Net) {
        let Some(id) = self.id.filter(|_| !self.closed) else { return };
        if self.sent < self.send.len() {
            let most = (self.sent + 1 + net.draw.below(20_000) as usize).min(self.send.len());
            match net.send(self.end, id, &self.send[self.sent..most]) {
                Ok(n) => self.sent += n,
                Err(Error::WouldBlock) => {}
                Err(e) => panic!("send: {e}"),
            }
        } else if !self.shut && (!self.last || self.finished) {
            self.shut = true;
            net.shutdown(self.end, id);
        }
        if !self.finished {
            match net.recv(self.end, id) {
                Ok(bytes) if bytes.is_empty() => self.finished = true,
                Ok(bytes) => self.got.extend(bytes),
                Err(Error::WouldBlock) => {}
                Err(e) => panic!("recv: {e}"),
            }
        }
        if self.shut && self.finished {
            self.closed = true;
            net.close(self.end, id);
            assert!(self.got == self.expect, "{} of {} bytes", self.got.len(), self.expect.len());
        }
    }
}

/// Returns the network of a case: two hosts that know each other's link address.
fn hosts(case: &Case) -> Net {
    let with = |n| StackSpec {
        mtu: case.mtu,
        min_rto: us(case.min_rto_us),
        delayed_ack: case.delayed_ack_us.map(us),
        ack_segments: case.ack_segments,
        tso: case.tso.then_some(30_000),
        checksum_offload: case.tso,
        timestamps: case.timestamps,
        loss_probe: case.loss_probe,
        sack: case.sack,
        congestion: if case.cubic { CongestionControl::Cubic } else { CongestionControl::Reno },
        timeout: us(1_000_000_000),
        connect_timeout: us(1_000_000_000),
        fin_timeout: us(1_000_000_000),
        seed: case.seed ^ u64::from(n),
        ..spec(n)
    };
    let mut net = Net::of([with(1), with(2)]);
    // The hosts need no address requests. Three lost requests would make a host unreachable.
    for (end, other) in [(0, 2), (1, 1)] {
        net.ends[end].add_neighbour(at(other, 0).ip(), [2, 0, 0, 0, 0, other]);
        net.ends[end].add_neighbour(at6(other, 0).ip(), [2, 0, 0, 0, 0, other]);
    }
    net.faults = case.faults;
    net.draw = Draw(case.seed);
    // A card coalesces only frames that arrive together, so the frames of such cases have no gap.
    (net.gap, net.lro) = if case.lro { (0, Some(20_000)) } else { (800, None) };
    net.keep_arrivals = false;
    net
}

/// Begins the connections of a case, with local ports from 1000 on. Returns both ends of each connection.
fn connected(case: &Case, net: &mut Net, options: &Options) -> Vec<(Flow, Flow)> {
    // Small buffers make many segments, so such cases have fewer bytes.
    let share = if case.buffers.0.min(case.buffers.1) < 20 { 100 } else { 1 };
    let mut flows = Vec::new();
    for (n, &(forth, back, last, v6)) in case.streams.iter().enumerate() {
        let to = if v6 { at6(2, 80) } else { at(2, 80) };
        net.ends[0].connect(Time::ZERO, to, Some(1000 + n as u16), options).unwrap();
        let (out, home) =
            (pattern(case.seed ^ n as u64, forth / share), pattern(!case.seed ^ n as u64, back / share));
        let flow = |end, send: &Vec<u8>, expect: &Vec<u8>, last| Flow {
            end,
            id: None,
            send: send.clone(),
            sent: 0,
            shut: false,
            expect: expect.clone(),
            got: Vec::new(),
            finished: false,
            last,
            closed: false,
        };
        flows.push((flow(0, &out, &home, last), flow(1, &home, &out, !last && n % 2 == 0)));
    }
    flows
}

/// Stores the identifier of each new connection in its end of the stream.
fn take_events(net: &mut Net, listener: ListenerId, flows: &mut [(Flow, Flow)]) {
    for (end, event) in std::mem::take(&mut net.events) {
        match event {
            Event::Connected(id) => {
                let port = net.ends[0].ends(id).unwrap().0.port();
                flows[usize::from(port) - 1000].0.id = Some(id);
            }
            Event::Incoming(_) => {
                let id = net.ends[1].accept(listener).unwrap();
                let port = net.ends[1].ends(id).unwrap().1.port();
                flows[usize::from(port) - 1000].1.id = Some(id);
            }
            Event::Finished(_) | Event::Closed(_) => {}
            other => panic!("host {end}: {other:?}"),
        }
    }
}

/// Runs a case until nothing is left to do. Returns the number of frames that were dropped for a wrong checksum.
fn run(case: &Case) -> u64 {
    let mut net = hosts(case);
    let options = Options {
        send_buffer: Some(case.buffers.0),
        receive_buffer: Some(case.buffers.1),
        nodelay: case.nodelay,
    };
    let listener = net.ends[1].listen(80, 64, &options).unwrap();
    let mut flows = connected(case, &mut net, &options);
    let limit = Time::from_ps(us(10_000_000_000).ps());
    let (mut steps, mut idle) = (0, 0);
    // A step without a network event can still be followed by one, because programs act too. Four such steps in a row
    // end the run.
    while idle < 4 {
        steps += 1;
        assert!(
            steps < 100_000,
            "no end at {} ms: {:?} {:?}",
            net.now.ns() / 1e6,
            net.ends[0].counters(),
            net.ends[1].counters()
        );
        take_events(&mut net, listener, &mut flows);
        for (a, b) in &mut flows {
            a.step(&mut net);
            b.step(&mut net);
        }
        idle = if net.step(limit) || !net.events.is_empty() { 0 } else { idle + 1 };
    }
    for (n, (a, b)) in flows.iter().enumerate() {
        assert!(
            a.closed && b.closed,
            "stream {n} hangs at {} ms: {} of {} bytes sent, {} read, ends {:?} {:?}, to be read {:?}, unacknowledged {:?}",
            net.now.ns() / 1e6,
            a.sent,
            a.send.len(),
            b.got.len(),
            (a.shut, a.finished),
            (b.shut, b.finished),
            b.id.map(|id| net.ends[1].readable(id)),
            a.id.map(|id| (net.ends[0].unacknowledged(id), net.ends[0].writable(id)))
        );
    }
    for end in &mut net.ends {
        assert_eq!((end.connections(), end.next_timer()), (0, None));
    }
    // An accepted damaged frame would have failed an assertion above. The caller checks that there were damaged frames.
    net.ends.iter().map(|end| end.counters().drops(Drop::Checksum)).sum()
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: 64 * usual.cases / 256, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_byte_arrives_and_every_connection_ends(case in cases()) {
        run(&case);
    }
}

/// Cases in which an earlier version of this TCP failed. It sent frames without end, or reset connections that were
/// closed in order. Or a late SYN and a late acknowledgement established a connection again after its end.
#[test]
fn schedules_that_have_failed_end() {
    let case = Case {
        faults: Faults { lost: 12_531, repeated: 0, late: 4436, damaged: 0 },
        seed: 5_963_497_996_561_473_514,
        streams: vec![(9500, 4600, false, false), (15_400, 12_700, true, false), (0, 0, false, true)],
        buffers: (1000, 6),
        mtu: 1500,
        min_rto_us: 500,
        delayed_ack_us: None,
        ack_segments: 2,
        tso: false,
        timestamps: false,
        loss_probe: true,
        nodelay: false,
        sack: true,
        cubic: false,
        lro: false,
    };
    run(&case);
    run(&Case {
        faults: Faults { lost: 0, repeated: 86_095, late: 75_529, damaged: 0 },
        seed: 3_847_865_684_406_379_701,
        streams: vec![(0, 0, false, false), (0, 27, false, false)],
        buffers: (1000, 1000),
        loss_probe: false,
        sack: false,
        ..case.clone()
    });
    run(&Case {
        faults: Faults { lost: 0, repeated: 0, late: 87_282, damaged: 17_369 },
        seed: 2_816_643_928_059_817_445,
        streams: vec![(1, 12_899, false, false), (0, 0, false, false), (5433, 1, true, false)],
        buffers: (70_000, 1617),
        mtu: 9000,
        ..case
    });
}
