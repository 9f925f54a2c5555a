//! Tests the TCP offloads of cards, which split packets into frames and join frames. Also tests protocols without soft
//! rings.

use super::support::{PLAIN_NIU, Rig, pattern, read};
use nicety_nic_ethernet::Report;

/// CPUs that are fast enough for one connection.
const FAST: &[&str] = &["threads.cycles_per_instruction=1"];

/// Sends a stream of `bytes` bytes from node 0 to node 1, with these overrides at each end. Returns the reports of both
/// nodes.
fn stream(bytes: usize, sender: &[&str], receiver: &[&str]) -> [Report; 2] {
    let [sender, receiver] = [sender, receiver].map(|changes| [FAST, changes].concat());
    let mut rig = Rig::of(&[(PLAIN_NIU, &sender), (PLAIN_NIU, &receiver)], Default::default());
    rig.program(0, async move |user| {
        let socket = user.connected(1, 80).await;
        user.send(socket, &pattern(bytes, 3)).await.unwrap();
        user.close(socket).await.unwrap();
    });
    rig.program(1, async move |user| {
        let listening = user.listening(80).await;
        let socket = user.accept(listening).await.unwrap();
        assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(bytes, 3));
        user.close(socket).await.unwrap();
    });
    rig.run();
    [0, 1].map(|node| rig.report(node))
}

fn instructions(report: &Report, group: &str) -> u64 {
    report.groups.iter().find(|each| each.group == group).unwrap().instructions
}

const CUTS: &[&str] = &["frames.tso=64 KiB"];
const JOINS: &[&str] = &["receive.lro=64 KiB", "receive.lro_time=20 us"];

#[test]
fn a_card_that_cuts_packets_saves_the_senders_work_and_no_frame() {
    let ([plain, at], [cut, cut_at]) = (stream(1 << 20, &[], &[]), stream(1 << 20, CUTS, &[]));
    let full = (1 << 20) / 1460;
    for report in [&plain, &cut] {
        assert!((full..full + 40).contains(&report.card.frames_sent), "{:?}", report.card);
    }
    assert!(instructions(&cut, "stack") * 2 < instructions(&plain, "stack"));
    assert!(instructions(&cut, "driver") * 2 < instructions(&plain, "driver"));
    assert_eq!((at.card.fcs_errors, cut_at.card.fcs_errors, cut_at.dropped), (0, 0, 0));
}

#[test]
fn a_card_that_joins_frames_saves_the_receivers_work() {
    let ([_, plain], [_, joined]) = (stream(1 << 20, &[], &[]), stream(1 << 20, &[], JOINS));
    assert!(joined.card.frames_received >= 719, "{:?}", joined.card);
    assert_eq!(joined.soft_rings.iter().sum::<u64>(), joined.packets);
    assert!(joined.packets * 4 < joined.card.frames_received, "{} packets", joined.packets);
    assert!(instructions(&joined, "stack") * 2 < instructions(&plain, "stack"));
    assert_eq!((joined.retransmissions, joined.dropped), (0, 0));
}

/// Packets of many buffers reach the end of the ring, and later packets continue at its start.
#[test]
fn joined_frames_take_buffers_in_a_row() {
    for entries in ["receive.entries=33", "receive.entries=50", "receive.entries=100"] {
        let small = [JOINS, &[entries, "receive.channels=1"]].concat();
        let [_, report] = stream(1 << 20, CUTS, &small);
        assert!(report.packets * 4 < report.card.frames_received, "{entries}: {report:?}");
    }
}

/// Without a waiting time, a frame is joined only with frames of the same instant. No frames arrive at the same
/// instant.
#[test]
fn frames_that_wait_no_time_are_joined_with_none() {
    let [_, report] = stream(100_000, &[], &["receive.lro=64 KiB"]);
    assert_eq!(report.packets, report.card.frames_received);
}

#[test]
fn without_soft_rings_the_interrupts_handlers_run_the_protocols() {
    let ([_, rings], [_, none]) = (stream(1 << 20, &[], &[]), stream(1 << 20, &[], &["stack.rings=0"]));
    assert_eq!((none.soft_rings.len(), none.backlog_full), (0, 0));
    assert!(none.context_switches < rings.context_switches);
    assert_eq!(none.card.frames_received, none.packets);
}

#[test]
fn offloads_that_cannot_be_are_refused() {
    for (overrides, expected) in [
        (
            &["frames.tso=64 KiB", "frames.checksums=host"][..],
            "a card that cuts packets computes the checksums",
        ),
        (&["frames.tso=1000 B"], "packets to be cut are longer than frames.mtu"),
        (
            &["receive.lro=64 KiB", "frames.checksums=host"],
            "a card that joins frames verifies their checksums",
        ),
        (&["receive.lro=64 KiB", "receive.entries=16"], "a ring has no room for such a packet"),
    ] {
        let error = read(PLAIN_NIU, overrides).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
