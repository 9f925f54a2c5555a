//! Links that check and resend packets, with times computed by hand, and with random traffic.

use crate::switch_support::{Net, Received, SPIN, Send, at, cases, ps, send};
use nicety_fabric::{
    BitErrorRate, Cause, Faults, LinkFaults, LinkProtocol, Medium, NetworkSpec, NetworkStatistics, Outage,
    Place, Rates, Resend, RouterSpec, Topology, Torus,
};
use nicety_types::{Duration, Gap, Stage};
use proptest::prelude::*;
use std::collections::HashMap;
use std::rc::Rc;

const TIMEOUT: u64 = 500_000;
const FLIGHT: u64 = 33_400;
/// Time of a packet of 1000 bytes on the wire, in ps.
const BYTES: u64 = 20_000;

fn resend(retries: u32, bit_errors: BitErrorRate) -> LinkProtocol {
    LinkProtocol { resend: Some(Resend { retries, timeout: ps(TIMEOUT), bit_errors }), ..LinkProtocol::NONE }
}

fn with(protocol: LinkProtocol) -> NetworkSpec {
    let mut spec = SPIN;
    spec.link.protocol = protocol;
    spec
}

/// Returns faults of the link from host 0 to host 1.
fn on_first(rates: Rates, drop: &[u64], down: &[Outage]) -> Faults {
    let (from, to) = (Place::Host(0), Place::Host(1));
    let link = LinkFaults { from, to, rates, down: down.to_vec(), drop: drop.to_vec() };
    Faults { links: vec![link], ..Faults::default() }
}

fn inject(net: &mut Net, faults: &Faults) {
    let ports = std::mem::take(&mut net.ports);
    let mut ports: Vec<_> = ports.into_iter().map(|port| Rc::into_inner(port).unwrap()).collect();
    net.network.inject(faults, &mut ports).unwrap();
    net.ports = ports.into_iter().map(Rc::new).collect();
}

/// Host 0 of a pair sends packets of 1000 bytes, each as its own message.
fn pair(retries: u32, packets: u64, faults: &Faults) -> (Vec<Received>, Net) {
    let mut net = Net::joined(Topology::Pair, 2, 1, &with(resend(retries, BitErrorRate::ZERO)));
    inject(&mut net, faults);
    net.sends(0, &(0..packets).map(|k| Send { message: k, ..send(1, 1000, 0) }).collect::<Vec<_>>());
    let received = net.try_run().1;
    (received, net)
}

fn arrivals(received: &[Received]) -> Vec<(u64, u64)> {
    received.iter().map(|r| (r.message, r.when.ps())).collect()
}

#[test]
fn a_lost_packet_is_sent_again_after_the_timeout_and_those_behind_it_too() {
    let (received, net) = pair(3, 3, &on_first(Rates::default(), &[2, 3], &[]));
    // The second packet is lost twice. Each timeout runs from the packet's last byte.
    let second = BYTES + 2 * (BYTES + TIMEOUT);
    let expected = [(0, BYTES), (1, second + BYTES), (2, second + 2 * BYTES)];
    assert_eq!(arrivals(&received), expected.map(|(message, sent)| (message, sent + FLIGHT)));
    let path = &received[1].path;
    assert_eq!(path.total(Stage::LINK_RESENT), ps(2 * (BYTES + TIMEOUT)));
    assert_eq!(path.total(Stage::LINK_QUEUED), ps(BYTES));
    assert_eq!(path.total(Stage::LINK), ps(BYTES + FLIGHT));
    // The third packet has waited for both resends, and was never resent itself.
    assert_eq!(received[2].path.total(Stage::LINK_RESENT), Duration::ZERO);
    assert_eq!(received[2].path.total(Stage::LINK_QUEUED), ps(second + BYTES));
    let statistics = net.network.statistics();
    let link = statistics.faults[0];
    assert_eq!((link.packets, link.lost, link.resent, link.corrupted), (5, 2, 2, 0));
    assert_eq!((statistics.hosts[0].sent_packets, statistics.hosts[0].resent_packets), (3, 2));
    assert_eq!(statistics.hosts[0].busy, ps(3 * BYTES + 2 * (BYTES + TIMEOUT)));
    assert_eq!(net.network.lost_packets(), []);
    assert_eq!(net.network.causes(), []);
}

#[test]
fn a_damaged_packet_is_sent_again_when_the_answer_is_back() {
    let rates = Rates { corruption: 1.0, ..Rates::default() };
    let (received, net) = pair(2, 1, &on_first(rates, &[], &[]));
    assert_eq!(received, [], "every transmission is damaged");
    let lost = net.network.lost_packets();
    // The packet is sent three times. Each resend begins after the NAK for the previous transmission.
    assert_eq!(
        (lost.len(), lost[0].time, lost[0].cause),
        (1, at(2 * (BYTES + 2 * FLIGHT)), Cause::BitErrors)
    );
    assert!(lost[0].to_string().ends_with("damaged each time that the link sent it"), "{}", lost[0]);
    let link = net.network.statistics().faults[0];
    assert_eq!((link.packets, link.corrupted, link.resent, link.lost), (3, 3, 2, 0));

    // With this seed, the first two transmissions are damaged and the third is not.
    let seed = (0..).find(|&seed| {
        let faults = Faults { seed, ..on_first(Rates { corruption: 0.5, ..Rates::default() }, &[], &[]) };
        pair(9, 1, &faults).1.network.statistics().faults[0].resent == 2
    });
    let faults =
        Faults { seed: seed.unwrap(), ..on_first(Rates { corruption: 0.5, ..Rates::default() }, &[], &[]) };
    let (received, _) = pair(9, 1, &faults);
    let again = 2 * (BYTES + 2 * FLIGHT);
    assert_eq!(arrivals(&received), [(0, again + BYTES + FLIGHT)]);
    assert_eq!(received[0].path.total(Stage::LINK_RESENT), ps(again));
}

#[test]
fn packets_of_a_message_behind_a_resent_one_share_its_path() {
    let mut net = Net::joined(Topology::Pair, 2, 1, &with(resend(3, BitErrorRate::ZERO)));
    inject(&mut net, &on_first(Rates::default(), &[1], &[]));
    let packet = |k: u64| Send { message: 7, offset: k * 1000, ..send(1, 1000, 0) };
    net.sends(0, &[packet(0), packet(1)]);
    let (_, received, _) = net.run();
    let path = &received[1].path;
    assert_eq!(path.at(), at(BYTES + TIMEOUT + 2 * BYTES + FLIGHT));
    assert_eq!(path.total(Stage::LINK_RESENT), ps(BYTES + TIMEOUT));
    assert_eq!(path.total(Stage::LINK), ps(2 * BYTES + FLIGHT));
}

#[test]
fn an_outage_is_bridged_and_a_link_that_is_down_for_good_loses_packets() {
    let outage = |until: Option<u64>| Outage { from: at(0), until: until.map(at) };
    let bridged = pair(3, 1, &on_first(Rates::default(), &[], &[outage(Some(600_000))])).0;
    // The packet is sent at 0 ns, at 520 ns and at 1040 ns.
    assert_eq!(arrivals(&bridged), [(0, 2 * (BYTES + TIMEOUT) + BYTES + FLIGHT)]);
    let (received, net) = pair(3, 2, &on_first(Rates::default(), &[], &[outage(None)]));
    assert_eq!(received, []);
    let lost = net.network.lost_packets();
    assert_eq!(lost.iter().map(|packet| packet.message.sequence).collect::<Vec<_>>(), [0, 1]);
    assert!(lost.iter().all(|packet| matches!(packet.cause, Cause::LinkDown(_))));
    // The second packet begins after the last transmission of the first packet has timed out.
    let times: Vec<u64> = lost.iter().map(|packet| packet.time.ps()).collect();
    assert_eq!(times, [3 * (BYTES + TIMEOUT), 7 * (BYTES + TIMEOUT)]);
}

#[test]
fn duplicates_are_discarded_and_late_packets_keep_their_place() {
    let rates = Rates { duplication: 1.0, reordering: 1.0, delay: ps(1), ..Rates::default() };
    let (received, net) = pair(3, 3, &on_first(rates, &[], &[]));
    // Each packet is 1 ps late, and its copy also takes the wire.
    let sent = |k: u64| k * (2 * BYTES + 1) + BYTES + 1;
    assert_eq!(arrivals(&received), [0, 1, 2].map(|k| (k, sent(k) + FLIGHT)));
    let link = net.network.statistics().faults[0];
    assert_eq!((link.packets, link.duplicated, link.reordered, link.resent), (3, 3, 3, 0));
}

#[test]
fn stuffed_words_take_their_time_on_the_wire() {
    let protocol = LinkProtocol { stuffing: 16, stuffing_every: 256, ..LinkProtocol::NONE };
    let mut net = Net::joined(Topology::Pair, 2, 1, &with(protocol));
    net.sends(0, &[send(1, 1000, 0)]);
    let (_, received, statistics) = net.run();
    assert_eq!(received[0].when, at((1000 + 3 * 16) * 20 + FLIGHT));
    assert_eq!((statistics.hosts[0].sent_bytes, statistics.hosts[1].received_bytes), (1048, 1048));
}

#[test]
fn bits_are_hit_as_often_as_the_rate_says() {
    // With 1000 bytes and 1e-5 errors per bit, 7.69 percent of transmissions are damaged.
    let mut net = Net::joined(Topology::Pair, 2, 1, &with(resend(50, BitErrorRate::new(1, 100_000))));
    const PACKETS: u64 = 5000;
    net.sends(0, &(0..PACKETS).map(|k| Send { message: k, ..send(1, 1000, 0) }).collect::<Vec<_>>());
    let (_, received, statistics) = net.run();
    assert!(received.windows(2).all(|pair| pair[0].message + 1 == pair[1].message), "once each, in order");
    let resent = statistics.hosts[0].resent_packets;
    assert!((350..480).contains(&resent), "{resent} of 5416 expected transmissions, 416 of them again");
    // Without faults, only links with bit errors have counters.
    assert_eq!(statistics.faults.len(), 1);
    assert_eq!((statistics.faults[0].corrupted, statistics.faults[0].resent), (resent, resent));
    assert_eq!(statistics.faults[0].packets, PACKETS + resent);
}

/// A random torus with random traffic, faults and bit errors.
#[derive(Clone, Debug)]
struct Storm {
    sizes: Vec<u32>,
    buffer: u32,
    errors: u64,
    rates: Rates,
    seed: u64,
    /// By sender: the receiver and the number of packets of each message.
    messages: Vec<Vec<(u32, u64)>>,
}

fn storm() -> impl Strategy<Value = Storm> {
    prop::collection::vec(1..=5u32, 1..=3)
        .prop_filter("some links", |sizes| sizes.iter().product::<u32>() > 1)
        .prop_flat_map(|sizes| {
            let hosts = sizes.iter().product::<u32>();
            let messages =
                prop::collection::vec(prop::collection::vec((0..hosts, 1..5u64), 0..6), hosts as usize);
            let rate = || prop_oneof![Just(0.0), 0.0..0.4f64];
            let rates = (rate(), rate(), rate(), rate(), 0..2_000_000u64);
            let rates = rates.prop_map(|(loss, corruption, duplication, reordering, delay)| Rates {
                loss,
                corruption,
                duplication,
                reordering,
                delay: ps(delay),
                burst: 0.0,
            });
            (Just(sizes), 1..4u32, prop_oneof![Just(0), 0..500u64], rates, any::<u64>(), messages).prop_map(
                |(sizes, buffer, errors, rates, seed, messages)| Storm {
                    sizes,
                    buffer,
                    errors,
                    rates,
                    seed,
                    messages,
                },
            )
        })
}

impl Storm {
    fn observe(&self, shards: usize) -> (Vec<Received>, NetworkStatistics) {
        let mut spec = with(resend(400, BitErrorRate::new(self.errors, 1_000_000)));
        spec.link.buffer = self.buffer;
        spec.router = Some(RouterSpec {
            latency: ps(50_000),
            buffer: self.buffer,
            entry: 1,
            gap: Some(Gap::new(7, 1)),
            axes: [Medium::LINK; 3],
        });
        let torus = Torus::new(&self.sizes).unwrap();
        let mut net = Net::joined(Topology::Torus(torus), self.messages.len() as u32, shards, &spec);
        inject(&mut net, &Faults { seed: self.seed, rates: self.rates, ..Faults::default() });
        for (host, messages) in (0..).zip(&self.messages) {
            let sends = (0..).zip(messages).flat_map(|(message, &(to, packets))| {
                (0..packets).map(move |k| Send { message, offset: k * 64, ..send(to, 64, 0) })
            });
            net.sends(host, &sends.collect::<Vec<_>>());
        }
        let (_, received, statistics) = net.run();
        assert!(net.network.is_idle());
        assert_eq!(net.network.lost_packets(), []);
        (received, statistics)
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_torus_of_bad_links_loses_doubles_and_reorders_nothing(storm in storm()) {
        let one = storm.observe(1);
        let mut last = HashMap::new();
        for r in &one.0 {
            let before = last.insert((r.source, r.by), (r.message, r.offset));
            prop_assert!(before < Some((r.message, r.offset)), "packets of a pair stay in order, and none comes twice");
            let took = r.path.at().since(r.path.origin());
            prop_assert_eq!(r.path.stages().map(|(_, d)| d).sum::<Duration>(), took);
        }
        let sent: u64 = storm.messages.iter().flatten().map(|(_, packets)| packets).sum();
        prop_assert_eq!(one.0.len() as u64, sent);
        let faults = &one.1.faults;
        prop_assert_eq!(faults.iter().map(|link| link.lost + link.corrupted).sum::<u64>(), faults.iter().map(|link| link.resent).sum::<u64>());
        for shards in [2, 5] {
            prop_assert_eq!(&storm.observe(shards), &one, "{} shards", shards);
        }
    }
}
