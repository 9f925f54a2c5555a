//! Captured packets of links. They agree with the counters, in any number of shards, and have times and dispositions.

use crate::switch_support::{Net, SPIN, Send, at, cases, content, ps, send};
use nicety_fabric::{
    BitErrorRate, Buffering, CapturedLink, CardPort, Channel, Disposition, Faults, FlowControl, HeaderBytes,
    Label, LinkFaults, LinkProtocol, NetworkSpec, NetworkStatistics, Outage, Packet, Pause, PauseSpec, Place,
    Rates, Resend, Topology,
};
use nicety_types::{Buffer, Duration, Flight, MessageId, NodeId, Path, Payload, Segment};
use proptest::prelude::*;
use std::rc::Rc;

const MEMORY: u64 = 1 << 30;
/// Time of a packet of 1000 bytes on the wire, latency of a link, and retransmission timeout, in ps.
const BYTES: u64 = 20_000;
const FLIGHT: u64 = 33_400;
const TIMEOUT: u64 = 500_000;

fn with(resends: bool) -> NetworkSpec {
    let bit_errors = BitErrorRate::new(u64::from(resends), 50_000);
    let resend = resends.then_some(Resend { retries: 4, timeout: ps(TIMEOUT), bit_errors });
    let mut spec = SPIN;
    spec.link.protocol = LinkProtocol { resend, ..LinkProtocol::NONE };
    spec
}

fn capture(net: &mut Net, faults: &Faults, memory: u64) {
    capture_of(net, faults, memory, None);
}

/// Captures a network. If `card` names a host, the switch counts as part of this host's card.
fn capture_of(net: &mut Net, faults: &Faults, memory: u64, card: Option<u32>) {
    let ports = std::mem::take(&mut net.ports);
    let mut ports: Vec<_> = ports.into_iter().map(|port| Rc::into_inner(port).unwrap()).collect();
    net.network.inject(faults, &mut ports).unwrap();
    net.network.capture(memory, &mut ports, card.map(NodeId));
    net.ports = ports.into_iter().map(Rc::new).collect();
}

/// Returns the time and disposition of the packets that host 0 of a pair sends. All packets have 1000 bytes and are
/// ready at time zero.
fn pair(
    spec: &NetworkSpec,
    packets: u64,
    rates: Rates,
    drop: &[u64],
    down: &[Outage],
) -> Vec<(u64, Disposition)> {
    let mut net = Net::joined(Topology::Pair, 2, 1, spec);
    let (from, to) = (Place::Host(0), Place::Host(1));
    let link = LinkFaults { from, to, rates, down: down.to_vec(), drop: drop.to_vec() };
    capture(&mut net, &Faults { links: vec![link], ..Faults::default() }, MEMORY);
    net.sends(0, &(0..packets).map(|k| Send { message: k, ..send(1, 1000, 0) }).collect::<Vec<_>>());
    let _ = net.try_run();
    let links = net.network.captured();
    assert_eq!((links.len(), links[0].from, links[0].to, links[0].left_out), (1, from, to, 0));
    (0..links[0].len())
        .map(|number| {
            let packet = links[0].packet(number);
            assert_eq!(packet.payload, content(0, packet.label.message.sequence, 0, 1000));
            assert_eq!((packet.header, packet.length, links[0].time(number)), (&[][..], 1000, packet.time));
            (packet.time.ps(), packet.disposition)
        })
        .collect()
}

const INTACT: Disposition =
    Disposition { lost: false, dropped: None, damaged: false, again: false, late: Duration::ZERO };
const LOST: Disposition = Disposition { lost: true, ..INTACT };
const AGAIN: Disposition = Disposition { again: true, ..INTACT };

#[test]
fn a_packet_has_the_time_of_its_first_byte_and_its_fate() {
    let none = Rates::default();
    let spec = with(false);
    assert_eq!(pair(&spec, 3, none, &[2], &[]), [(0, INTACT), (BYTES, LOST), (2 * BYTES, INTACT)]);
    let down = Outage { from: at(BYTES + 1), until: None };
    assert_eq!(pair(&spec, 3, none, &[], &[down]), [(0, INTACT), (BYTES, INTACT), (2 * BYTES, LOST)]);
    // The copy follows its packet directly on the wire.
    let doubled = Rates { duplication: 1.0, ..none };
    assert_eq!(
        pair(&spec, 2, doubled, &[], &[]),
        [(0, INTACT), (BYTES, AGAIN), (2 * BYTES, INTACT), (3 * BYTES, AGAIN)]
    );
    let late = Rates { reordering: 1.0, delay: ps(1), ..none };
    let disposition = Disposition { late: ps(1), ..INTACT };
    assert_eq!(pair(&spec, 2, late, &[], &[]), [(0, disposition), (BYTES, disposition)]);
}

#[test]
fn each_transmission_of_a_link_that_sends_again_is_a_packet() {
    let mut spec = with(true);
    let resend = spec.link.protocol.resend.as_mut().unwrap();
    resend.bit_errors = BitErrorRate::ZERO;
    let lost = pair(&spec, 2, Rates::default(), &[1, 2], &[]);
    let wait = BYTES + TIMEOUT;
    let expected = [
        (0, LOST),
        (wait, Disposition { again: true, ..LOST }),
        (2 * wait, AGAIN),
        (2 * wait + BYTES, INTACT),
    ];
    assert_eq!(lost, expected);
    // Each transmission is damaged. After four resends the packet is lost.
    let damaged = Disposition { damaged: true, ..INTACT };
    let answered = BYTES + 2 * FLIGHT;
    let corrupt = Rates { corruption: 1.0, ..Rates::default() };
    let mut expected = vec![(0, damaged)];
    expected.extend((1..=4).map(|k| (k * answered, Disposition { again: true, ..damaged })));
    assert_eq!(pair(&spec, 1, corrupt, &[], &[]), expected);
}

#[test]
fn nodes_share_the_memory_and_keep_the_first_packets() {
    let run = |memory| {
        let mut net = Net::star(3, 1, &SPIN);
        capture(&mut net, &Faults::default(), memory);
        for host in 0..2 {
            // The last packet is short. It would fit into memory that the previous packet did not fit into.
            let mut sends: Vec<_> = (0..9).map(|k| Send { message: k, ..send(2, 1000, 0) }).collect();
            sends.push(Send { message: 9, ..send(2, 1, 0) });
            net.sends(host, &sends);
        }
        net.run();
        net.network.captured()
    };
    let counts = |links: &[CapturedLink]| {
        links.iter().map(|l| (l.from, l.to, l.len(), l.left_out)).collect::<Vec<_>>()
    };
    let (switch, hosts) = (Place::Switch(0), [0, 1, 2].map(Place::Host));
    assert_eq!(
        counts(&run(MEMORY)),
        [(hosts[0], switch, 10, 0), (hosts[1], switch, 10, 0), (switch, hosts[2], 20, 0)]
    );
    // Each of the four nodes has room for two packets and their rows, but not for three.
    assert_eq!(
        counts(&run(4 * 3000)),
        [(hosts[0], switch, 2, 8), (hosts[1], switch, 2, 8), (switch, hosts[2], 2, 18)]
    );
    assert_eq!(counts(&run(0))[2], (switch, hosts[2], 0, 20));
}

/// Random messages of hosts, and faults.
#[derive(Clone, Debug)]
struct Storm {
    topology: Topology,
    resends: bool,
    hosts: u32,
    sends: Vec<(u32, u32, u64, u64)>,
    faults: Faults,
}

/// A packet in any capture: the two nodes of the link, the time in ps, the bytes, and the disposition.
type Kept = (Place, Place, u64, Vec<u8>, Disposition);

impl Storm {
    fn observe(&self, shards: usize) -> (Vec<Kept>, NetworkStatistics) {
        let mut spec = with(self.resends);
        if matches!(self.topology, Topology::Torus(_)) {
            spec.link.channels = 2;
        }
        let mut net = Net::joined(self.topology, self.hosts, shards, &spec);
        capture(&mut net, &self.faults, MEMORY);
        for host in 0..self.hosts {
            let own = self.sends.iter().enumerate().filter(|(_, (from, ..))| from % self.hosts == host);
            let own = own.map(|(number, &(_, to, bytes, when))| Send {
                message: number as u64,
                ..send(to % self.hosts, bytes, when)
            });
            let own: Vec<_> = own.filter(|send| send.to != host).collect();
            net.sends(host, &own);
        }
        let _ = net.try_run();
        let links = net.network.captured();
        let packets = links.iter().flat_map(|link| {
            assert_eq!(link.left_out, 0);
            (0..link.len()).map(|number| {
                let packet = link.packet(number);
                (link.from, link.to, packet.time.ps(), packet.payload.to_vec(), packet.disposition)
            })
        });
        (packets.collect(), net.network.statistics())
    }
}

fn storm() -> impl Strategy<Value = Storm> {
    let topology =
        prop_oneof![Just(("pair", 2)), Just(("star", 5)), Just(("fat-tree:4", 8)), Just(("torus:2x3", 6)),];
    let sends = prop::collection::vec((0u32..8, 0u32..8, 0u64..3000, 0u64..200_000), 1..60);
    let rates = (0.0..0.3, 0.0..0.3, 0.0..0.3, 0.0..0.3);
    (topology, any::<bool>(), sends, rates, any::<u64>()).prop_map(
        |((topology, hosts), resends, sends, (loss, corruption, duplication, reordering), seed)| {
            // Receivers compare the bytes of packets, so only links that check packets may damage them.
            let corruption = if resends { corruption } else { 0.0 };
            let rates = Rates { loss, corruption, duplication, reordering, delay: ps(90_000), burst: 0.0 };
            let faults = Faults { seed, rates, ..Faults::default() };
            Storm { topology: topology.parse().unwrap(), resends, hosts, sends, faults }
        },
    )
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_capture_agrees_with_counters(storm in storm()) {
        let (packets, statistics) = storm.observe(1);
        let is_torus = matches!(storm.topology, Topology::Torus(_));
        let switches = statistics.switches.iter().flat_map(|s| &s.ports[usize::from(is_torus)..]);
        let ports: Vec<_> = statistics.hosts.iter().filter(|_| !is_torus).chain(switches).collect();
        let faults = &statistics.faults;
        // A link that checks packets discards copies itself, so the receiving port does not count them.
        let copies = if storm.resends { faults.iter().map(|f| f.duplicated).sum() } else { 0 };
        let count = |disposition: fn(&Disposition) -> bool| packets.iter().filter(|p| disposition(&p.4)).count() as u64;
        prop_assert_eq!(packets.len() as u64, ports.iter().map(|p| p.sent_packets + p.resent_packets).sum::<u64>() + copies);
        prop_assert_eq!(count(|disposition| disposition.lost), faults.iter().map(|f| f.lost).sum::<u64>());
        prop_assert_eq!(count(|disposition| disposition.damaged), faults.iter().map(|f| f.corrupted).sum::<u64>());
        prop_assert_eq!(count(|disposition| disposition.again), faults.iter().map(|f| f.duplicated + f.resent).sum::<u64>());
        let (late, reordered) = (count(|disposition| !disposition.late.is_zero()), faults.iter().map(|f| f.reordered).sum());
        // The link's own bit errors damage some of the delayed packets.
        prop_assert!(late <= reordered, "{} of {}", late, reordered);
        if !storm.resends {
            prop_assert_eq!(late, reordered);
            let bytes: u64 = packets.iter().map(|p| p.3.len() as u64).sum();
            prop_assert_eq!(bytes, ports.iter().map(|p| p.sent_bytes).sum::<u64>());
        }
        for shards in [2, 5] {
            prop_assert_eq!(&storm.observe(shards).0, &packets, "{} shards", shards);
        }
    }
}

#[test]
fn the_payload_is_kept_up_to_its_first_phantom_byte() {
    let mut net = Net::joined(Topology::Pair, 2, 1, &SPIN);
    capture(&mut net, &Faults::default(), MEMORY);
    let (sim, port) = (net.world.sim(NodeId(0)), net.ports[0].clone());
    sim.clone().spawn_program("sender", async move {
        let mut payload = Payload::copy_of(b"abc");
        payload.push(Segment::Real(Buffer::copy_of(b"de")));
        payload.push(Segment::Phantom(7));
        payload.push(Segment::Real(Buffer::copy_of(b"fg")));
        let message = MessageId { source: NodeId(0), sequence: 3 };
        let label = Label { destination: NodeId(1), message, offset: 5 };
        let (header, path) = (HeaderBytes::new(b"head"), Path::from(sim.now()));
        let turn = port.control_turn(Flight::resting(path.clone())).await;
        port.launch(Packet { label, channel: Channel::Control, header, payload, path }, turn);
        // The packet has more bytes than a capture keeps.
        let path = Path::from(sim.now());
        let turn = port.turn(Flight::resting(path.clone())).await;
        let payload = Payload::copy_of(&vec![7; 300_000]);
        port.launch(Packet { label, channel: Channel::Data(0), header, payload, path }, turn);
    });
    let _ = net.world.run();
    let links = net.network.captured();
    let packet = links[0].packet(0);
    assert_eq!((packet.header, packet.payload, packet.length), (&b"head"[..], &b"abcde"[..], 14));
    assert_eq!(
        (packet.channel, packet.label.message.sequence, packet.label.offset),
        (Channel::Control, 3, 5)
    );
    let packet = links[0].packet(1);
    assert_eq!((packet.header, packet.payload.len(), packet.length), (&b"head"[..], (1 << 18) - 4, 300_000));
    assert!(net.network.captured().is_empty(), "it was taken");
}

#[test]
fn pause_frames_are_kept_with_their_bytes_and_say_what_counters_count() {
    let mut spec = SPIN;
    spec.link.buffer = 2;
    let flow = FlowControl::Pfc(Buffering::default(), PauseSpec { quanta: 700, ..PauseSpec::default() });
    let mut net = Net::flowing("star", 2, 1, &spec, flow);
    capture(&mut net, &Faults::default(), MEMORY);
    net.sends(0, &(0..30).map(|k| Send { message: k, ..send(1, 4096, 0) }).collect::<Vec<_>>());
    // Packets arrive faster than the card takes them, so the card pauses the switch.
    net.serves(1, ps(819_200));
    let _ = net.try_run();
    let links = net.network.captured();
    let back = links.iter().find(|link| (link.from, link.to) == (Place::Host(1), Place::Switch(0))).unwrap();
    let frames: Vec<_> =
        (0..back.len()).map(|number| back.packet(number)).filter(|frame| frame.pause.is_some()).collect();
    let card = net.network.queues()[1];
    assert!(frames.len() as u64 == card.pauses_sent && card.pauses_sent > 10, "{card:?}");
    let (first, last) = (&frames[0], frames.last().unwrap());
    assert_eq!([first.pause, last.pause], [Some(Pause::For(700)), Some(Pause::Resume)]);
    // The frame goes to the group address of MAC control, and comes from station 1. It pauses priority 0 for 700
    // quanta.
    let start = [1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 8, 1, 1, 0, 1, 0x02, 0xbc];
    assert_eq!((frames[0].header[..20].to_vec(), frames[0].header.len()), (start.to_vec(), 60));
    assert!(frames[0].header[20..].iter().all(|&byte| byte == 0) && frames[0].payload.is_empty());
    // The frames are among the packets, in the order of sending.
    assert!(frames.windows(2).all(|pair| pair[0].time < pair[1].time));
}

#[test]
fn a_pause_is_repeated_as_long_as_packets_leave() {
    let mut spec = SPIN;
    spec.link.buffer = 2;
    // Half a pause is 200 ns, and a packet leaves every 819 ns. The pause ends after 16 packets, so it is repeated
    // about 60 times.
    let pause = PauseSpec { quanta: 312, xoff: Some(20 * 4096), xon: Some(4 * 4096), ..PauseSpec::default() };
    let buffering = Buffering { size: Some(1 << 20), ..Buffering::default() };
    let mut net = Net::flowing("star", 2, 1, &spec, FlowControl::Pfc(buffering, pause));
    capture(&mut net, &Faults::default(), MEMORY);
    net.sends(0, &(0..60).map(|k| Send { message: k, ..send(1, 4096, 0) }).collect::<Vec<_>>());
    net.serves(1, ps(819_200));
    let _ = net.try_run();
    let links = net.network.captured();
    let back = links.iter().find(|link| (link.from, link.to) == (Place::Switch(0), Place::Host(0))).unwrap();
    let said: Vec<_> = (0..back.len()).filter_map(|number| back.packet(number).pause).collect();
    let begun = said.iter().position(|pause| *pause == Pause::Resume).unwrap();
    assert!(begun > 50, "{said:?}");
    assert!(!said.contains(&Pause::UntilResumed), "{said:?}");
}

/// Host 1 has a card with two ports. Hosts 0 and 2 send it packets of 4096 bytes, faster than it takes them.
fn two_ports(flow: FlowControl) -> Vec<CapturedLink> {
    let mut spec = SPIN;
    spec.link.buffer = 2;
    spec.switch.latency = Duration::ZERO;
    let mut net = Net::flowing("star", 3, 1, &spec, flow);
    capture_of(&mut net, &Faults::default(), MEMORY, Some(1));
    for host in [0, 2] {
        net.sends(host, &(0..30).map(|k| Send { message: k, ..send(1, 4096, 0) }).collect::<Vec<_>>());
    }
    net.serves(1, ps(819_200));
    let _ = net.try_run();
    net.network.captured()
}

fn port(number: u32) -> Option<CardPort> {
    Some(CardPort { card: Place::Host(1), number })
}

#[test]
fn each_port_of_a_card_is_a_link_with_its_own_pauses() {
    let pause = PauseSpec { xoff: Some(4 * 4096), xon: Some(2 * 4096), ..PauseSpec::default() };
    let links = two_ports(FlowControl::Pfc(Buffering { size: Some(1 << 20), ..Buffering::default() }, pause));
    let card = Place::Host(1);
    let found: Vec<_> = links.iter().map(|link| (link.from, link.to, link.dropped, link.port)).collect();
    let ends = [(Place::Host(0), 0), (Place::Host(2), 1)];
    let to_card = ends.map(|(host, number)| (host, card, false, port(number)));
    let from_card = ends.map(|(host, number)| (card, host, false, port(number)));
    assert_eq!(found, [to_card, from_card].concat());
    for link in &links[..2] {
        assert_eq!(link.len(), 30);
        // A wire carries one packet at a time.
        let times: Vec<_> = (0..30).map(|number| link.time(number).ps()).collect();
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 4096 * 20), "{times:?}");
    }
    for link in &links[2..] {
        let said: Vec<_> = (0..link.len()).map(|number| link.packet(number)).collect();
        assert!(said.iter().any(|frame| frame.pause == Some(Pause::Resume)));
        // The frames come from the card's address, which is station 1.
        assert!(said.iter().all(|frame| frame.pause.is_some() && frame.header[6..12] == [2, 0, 0, 0, 0, 1]));
    }
}

#[test]
fn drops_of_a_card_are_counted_by_port() {
    let links = two_ports(FlowControl::None(Buffering::default()));
    let dropped: Vec<_> = links.iter().filter(|link| link.dropped).collect();
    assert_eq!(
        dropped.iter().map(|link| (link.from, link.port)).collect::<Vec<_>>(),
        [(Place::Host(1), port(0)), (Place::Host(1), port(1))]
    );
    for (link, source) in dropped.into_iter().zip([0, 2]) {
        assert!(link.len() > 5);
        assert!((0..link.len()).all(|number| link.packet(number).label.message.source == NodeId(source)));
    }
    assert!(links.iter().all(|link| !matches!(link.from, Place::Switch(_))), "it is inside the card");
}
