//! Schedules with messages that handlers on the cards execute.

use crate::schedules::{cases, matching, messages, read};
use nicety::spin::SpinSpec;
use nicety::{ClusterConfig, Error, HandlerNames, Handlers, Spread, Topology, cards as specs};
use nicety_goal::cards::{self, Failure, Finished};
use nicety_goal::generate::{Pattern, Shape, generate};
use nicety_goal::loggops::{self, Rules};
use nicety_goal::{Schedule, Shares};
use proptest::prelude::*;
use std::sync::Arc;

/// `handlers/matching.c`, compiled for the instruction set of the shipped cards.
const MATCHING: &[u8] = include_bytes!("data/matching.elf");

/// Runs a schedule in both modes: by the library on the host, and by handlers on the card.
fn both(schedule: &Schedule, nic: &str, overrides: &[&str]) -> [Result<Finished, Failure>; 2] {
    [false, true].map(|by_card| run_on(nic, schedule, overrides, by_card, 1, &mut |_| true))
}

fn run_on(
    nic: &str,
    schedule: &Schedule,
    overrides: &[&str],
    by_card: bool,
    threads: u32,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Finished, Failure> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let card = specs::load(nic, &overrides).unwrap();
    let topology = match schedule.ranks() {
        1 => Topology::Alone,
        2 => Topology::Pair,
        _ => Topology::Star,
    };
    let spec = card.spec.of::<SpinSpec>().unwrap();
    let handlers = Handlers::load(MATCHING, &HandlerNames::default(), &spec.hpu).unwrap();
    let config = ClusterConfig { topology, ..ClusterConfig::new(schedule.ranks(), card.clone()) };
    let spread = Spread::threads(threads as usize);
    cards::run_by(&Arc::new(schedule.clone()), config, by_card.then_some(&handlers), &spread, go_on)
}

/// Runs a schedule by handlers on the card.
fn on_card(goal: &str, overrides: &[&str]) -> Result<Finished, Failure> {
    let [_, card] = both(&read(goal), "spin-discrete", overrides);
    card
}

/// Returns the end of each rank's last operation, in picoseconds.
fn finish(goal: &str) -> Vec<u64> {
    on_card(goal, &[]).unwrap().finish_ps
}

fn failure(goal: &str, overrides: &[&str]) -> Error {
    match on_card(goal, overrides) {
        Err(Failure::Run(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A cycle of a handler core, in picoseconds.
const CYCLE: u64 = 400;
/// The time in which the header handler passes on a short message.
const PASSES: u64 = 10 * CYCLE;
/// The time until the header handler has posted the get of a long message.
const GETS: u64 = 22 * CYCLE;

fn pair(sender: &str, receiver: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{sender}\n}}\nrank 1 {{\n{receiver}\n}}")
}

#[test]
fn a_short_message_takes_a_latency_and_its_header_handler() {
    // In nanoseconds: post 65, bus 250, link 0.160 + 33.4, match 30, deposit and event 0.125 + 250, notice 65. Their sum is
    // 693.685.
    let done = finish(&pair("send 8b to 1", "recv 8b from 0"));
    assert_eq!(done[1], 693_685 + PASSES);
}

#[test]
fn a_long_message_is_got_by_its_header_handler() {
    let done = finish(&pair("send 65536b to 1", "recv 65536b from 0"));
    // The request: post, bus, link, match.
    let request = 65_000 + 250_000 + 33_400 + 30_000;
    // The get: link, match, fetch. Then the bytes stream over the link, the slowest stage.
    let get = 33_400 + 30_000 + 500_000 + 1_310_720 + 33_400;
    // The reply's last packet: match of a further packet, deposit, and the host reads the count.
    let end = 2000 + 63_898 + 250_000 + 65_000;
    assert_eq!(done[1], request + GETS + get + end);
    // The sender's event crosses the bus after the last byte on the link. Then the host notices the event.
    let read = request + GETS + 33_400 + 30_000 + 500_000 + 1_310_720;
    assert!((read..read + 400_000).contains(&done[0]), "{} {read}", done[0]);
}

#[test]
fn a_late_receive_goes_the_same_way() {
    let late = |bytes: u64| {
        let done = finish(&pair(
            &format!("send {bytes}b to 1"),
            &format!("c: calc 20000\nr: recv {bytes}b from 0\nr requires c"),
        ));
        done[1] - 20_000_000
    };
    // Post, bus. Then the card sends the bytes in the buffer to itself: fetch, match, handler, deposit, notice.
    let fetched = 65_000 + 250_000 + 500_000 + 125 + 30_000 + PASSES + 250_125 + 65_000;
    assert_eq!(late(8), fetched);
    // The request is already on the card: match, handler, get.
    let get = 33_400 + 30_000 + 500_000 + 1_310_720 + 33_400;
    let got = 65_000 + 250_000 + 30_000 + GETS + get + 2000 + 63_898 + 250_000 + 65_000;
    assert_eq!(late(65536), got);
}

/// Returns the receiver's times in both modes. The receiver posts a receive while it computes on another CPU. The only core of
/// the host is busy.
fn computing(nic: &str, bytes: u64) -> [(Shares, u64); 2] {
    let goal = pair(
        &format!("send {bytes}b to 1"),
        &format!("a: calc 5000\nb: calc 400000\nr: recv {bytes}b from 0 cpu 1\nr requires a\nb requires a"),
    );
    let schedule = read(&goal);
    both(&schedule, nic, &["host.cores=1"]).map(|run| {
        let run = run.unwrap();
        (run.shares(&schedule)[1], run.finish_ps[1])
    })
}

#[test]
fn computing_holds_up_the_hosts_rendezvous_and_not_the_cards() {
    for nic in ["spin-discrete", "spin-integrated"] {
        let [(host, host_end), (card, card_end)] = computing(nic, 1 << 20);
        // The host gets the bytes after its calculation. The card has them by then. The only core posts the receive before the
        // calculation.
        assert_eq!((host.computing, card.computing), (405_065_000, 405_065_000));
        assert!(host_end > 405_000_000 + 20_971_000, "{nic}: {host_end}");
        assert!(card_end < 405_000_000 + 1_000_000, "{nic}: {card_end}");
    }
}

#[test]
fn both_modes_carry_every_pattern() {
    for nic in ["spin-discrete", "spin-integrated"] {
        for (name, pattern) in Pattern::ALL {
            for size in [100, 9000] {
                let shape = Shape { ranks: 5, size, iterations: 2, compute_ns: 1000, layers: 2 };
                let schedule = generate(pattern, &shape, &mut |_| true).unwrap();
                let [host, card] = both(&schedule, nic, &[]);
                let (host, card) = (host.unwrap(), card.unwrap_or_else(|error| panic!("{name}: {error:?}")));
                assert_eq!(card.counts.operations, schedule.ops().len() as u64, "{name}");
                assert_eq!(card.counts.messages, host.counts.messages, "{name}");
                // The stages of the path to the last end add up to the time of this end.
                let last = card.finish_ps.iter().max().copied().unwrap();
                let path: u64 = card.stages.iter().flatten().map(|(_, ps)| ps).sum();
                assert_eq!(path, last, "{nic}, {name}");
                assert!(card.shares(&schedule).iter().all(|own| own.both <= own.computing));
            }
        }
    }
}

#[test]
fn threads_change_nothing_by_the_card() {
    let shape = Shape { ranks: 5, size: 9000, iterations: 2, compute_ns: 1000, layers: 2 };
    let schedule = generate(Pattern::LinearAlltoall, &shape, &mut |_| true).unwrap();
    let run = |threads| run_on("spin-discrete", &schedule, &[], true, threads, &mut |_| true).unwrap();
    assert_eq!(run(3), run(1));
}

#[test]
fn messages_of_one_tag_are_received_in_their_order_early_or_late() {
    // If a match is wrong, a message is longer than its receive.
    let sizes = [8, 100_000, 3000, 0, 40_000, 8, 100_000, 500];
    for delay in [0, 300, 700, 50_000] {
        let sends = sizes.map(|size| format!("send {size}b to 1 tag 5\n")).concat();
        let mut receives = format!("c: calc {delay}\n");
        for (number, size) in sizes.iter().enumerate() {
            // Only receives with wildcard tags all have room for the longest message. Here all have one source and one tag.
            receives += &format!("r{number}: recv {size}b from 0 tag 5\nr{number} requires c\n");
        }
        let goal = pair(&sends, &receives);
        let finished = on_card(&goal, &[]).unwrap_or_else(|error| panic!("after {delay} ns: {error:?}"));
        assert_eq!(finished.counts.messages, 8);
    }
}

#[test]
fn wildcards_take_early_and_late_messages_of_any_source_and_tag() {
    for delay in [0, 40_000] {
        let mut goal = "num_ranks 4\nrank 0 {\nc: calc 0\n".replace("calc 0", &format!("calc {delay}"));
        // The receives take any source with one tag, any tag of one source, and any message.
        let wanted = ["from -1 tag 1", "from 2 tag -1", "from -1 tag -1", "from -1 tag -1"];
        for (number, what) in wanted.iter().enumerate() {
            goal += &format!("r{number}: recv 9000b {what}\nr{number} requires c\n");
        }
        goal += "}\nrank 1 {\nsend 9000b to 0 tag 1\nsend 8b to 0 tag 3\n}\n\
                 rank 2 {\nsend 100b to 0 tag 7\n}\nrank 3 {\nsend 9000b to 0 tag 4\n}";
        let finished = on_card(&goal, &[]).unwrap_or_else(|error| panic!("after {delay} ns: {error:?}"));
        assert_eq!(finished.counts.messages, 4);
    }
}

#[test]
fn a_rank_sends_to_itself() {
    let goal = "num_ranks 1\nrank 0 {\nsend 8b to 0\nsend 9000b to 0 tag 1\nrecv 8b from 0\nrecv 9000b from 0 tag 1\n}";
    assert_eq!(on_card(goal, &[]).unwrap().counts.messages, 2);
}

#[test]
fn buffers_are_used_again() {
    // Each of the two buffers has room for four messages. Twenty messages arrive one after another, each before its receive.
    let overrides = ["messages.buffers=2", "messages.buffer=8 KiB"];
    let mut sends = String::new();
    let mut receives = String::new();
    for round in 0..20 {
        sends +=
            &format!("s{round}: send 2000b to 1\nt{round}: recv 0b from 1\nt{round} requires s{round}\n");
        receives +=
            &format!("c{round}: calc 5000\nr{round}: recv 2000b from 0\nr{round} requires c{round}\n");
        receives += &format!("a{round}: send 0b to 0\na{round} requires r{round}\n");
        if round > 0 {
            sends += &format!("s{round} requires t{}\n", round - 1);
            receives += &format!("c{round} requires a{}\n", round - 1);
        }
    }
    assert_eq!(on_card(&pair(&sends, &receives), &overrides).unwrap().counts.messages, 40);
}

#[test]
fn impossible_offloads_are_reported() {
    let cut = pair("send 16b to 1", "recv 8b from 0");
    let text = failure(&cut, &[]).to_string();
    assert!(
        text.starts_with("rank 1: operation 0 (line 6: recv 8b from 0): a message of 16 bytes"),
        "{text}"
    );
    let cut = pair("send 10000b to 1", "recv 5000b from 0");
    let text = failure(&cut, &[]).to_string();
    assert!(text.contains("operation 0 (line 6: recv 5000b from 0)") && text.contains("10000"), "{text}");

    let long = pair("send 4294967296b to 1", "recv 4294967296b from 0");
    let Error::Input(text) = failure(&long, &[]) else { panic!("wrong input") };
    assert!(text.starts_with("rank 0: operation 0 (line 3: send 4294967296b to 1"), "{text}");
    // A long transfer begins, and is stopped.
    let longest = pair("send 4294967295b to 1", "recv 4294967295b from 0");
    let stopped = Failure::Run(Error::Interrupted);
    assert_eq!(run_on("spin-discrete", &read(&longest), &[], true, 1, &mut |_| false), Err(stopped));

    // A message without a receive, and a receive without a message.
    let lonely = on_card(&pair("send 9000b to 1", "calc 5"), &[]);
    assert!(matches!(&lonely, Err(Failure::Stuck(stuck, _)) if stuck.sends == [(0, 0)]), "{lonely:?}");
    let lonely = on_card(&pair("send 8b to 1", "calc 5"), &[]);
    assert!(matches!(&lonely, Err(Failure::Stuck(stuck, _)) if stuck.sends == [(0, 0)]), "{lonely:?}");
    let lonely = on_card(&pair("calc 5", "recv 8b from 0"), &[]);
    assert!(matches!(&lonely, Err(Failure::Stuck(stuck, _)) if stuck.receives == [(1, 0)]), "{lonely:?}");
}

#[test]
fn limits_of_the_card_are_errors_that_name_them() {
    let many = |what: &str| what.repeat(5);
    let posted = pair(&many("send 8b to 1\n"), &many("recv 8b from 0\n"));
    let text = failure(&posted, &["limits.match_entries=4"]).to_string();
    assert!(text.starts_with("rank 1: operation ") && text.contains("limits.match_entries"), "{text}");
    let text = failure(&posted, &["limits.counters=3"]).to_string();
    assert!(text.starts_with("rank 1: operation ") && text.contains("counter"), "{text}");

    let mut late = "c: calc 50000\n".to_owned();
    for number in 0..5 {
        late += &format!("r{number}: recv 2000b from 0\nr{number} requires c\n");
    }
    let early = pair(&many("send 2000b to 1\n"), &late);
    let text = failure(&early, &["limits.unexpected_headers=4"]).to_string();
    assert!(
        text.starts_with("rank 1: a message from rank 0, tag 0") && text.contains("unexpected_headers (4)"),
        "{text}"
    );
    let text = failure(&early, &["messages.buffers=1", "messages.buffer=4 KiB"]).to_string();
    assert!(
        text.starts_with("rank 1: a message from rank 0, tag 0") && text.contains("messages.buffers (1)"),
        "{text}"
    );

    let small = failure(&posted, &["limits.event_queues=1"]).to_string();
    assert!(small.starts_with("rank 0: ") && small.contains("event_queues"), "{small}");
    // With one context, messages wait for this context, and no message is lost.
    assert!(on_card(&posted, &["hpu.contexts=1"]).is_ok());
    assert!(on_card(&early, &["hpu.contexts=1"]).is_ok());
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn schedules_that_end_on_loggops_end_in_both_modes(
        (ranks, messages) in (1..5_u32)
            .prop_flat_map(|ranks| (Just(ranks), messages(ranks, &[0, 2000, 2049, 40_000], prop_oneof![Just(0), 1..6000_u64]))),
        any_source in any::<bool>(),
        integrated in any::<bool>(),
        cores in 1..3_u32,
    ) {
        let schedule = matching(ranks, &messages, any_source);
        // Sends that wait for others' ends are all short or posted, so only schedules that finish by LogGOPS count.
        let network = crate::schedules::network([1000, 100, 10, 1, 0, 65_535]);
        let expected = loggops::run(&schedule, &network, Rules::Own, &mut |_| true);
        prop_assume!(expected.is_ok());
        let nic = if integrated { "spin-integrated" } else { "spin-discrete" };
        let cores = format!("host.cores={cores}");
        let [host, card] = both(&schedule, nic, &[&cores]);
        let (host, card) = (host.unwrap(), card.unwrap());
        prop_assert_eq!(host.counts.operations, schedule.ops().len() as u64);
        prop_assert_eq!(card.counts.operations, host.counts.operations);
        prop_assert_eq!(card.counts.messages, host.counts.messages);
        // A second run has the same result to the last bit.
        let [_, again] = both(&schedule, nic, &[&cores]);
        prop_assert_eq!(&card.finish_ps, &again.unwrap().finish_ps);
    }
}
