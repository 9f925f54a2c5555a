//! Tests handlers on frames: their selection, their times, and the disposition of frames.

use super::support::{Rig, at};
use nicety_hpu::asm::*;
use nicety_nic_core::parts::DueTime;
use nicety_nic_ethernet::{EthernetSpec, InstallError, Rule, RuleReport, SocketKind};
use nicety_nic_processors::{Handlers, stages};
use nicety_nic_testing::code::{Code, program_for};
use nicety_types::{Duration, NodeId, Path};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const CARD: &str = "spin-100g";
/// Memory without contended banks, so that cores have no common clock.
const IDEAL: [&str; 1] = ["memory.l1.contended=false"];

const PUSH: u32 = 0x170;
const PULL: u32 = 0x171;
const RESIZE: u32 = 0x172;
const DROP: i32 = 0;
const HOST: i32 = 1;
const WIRE: i32 = 2;

fn handler(code: Code) -> Handlers {
    let card = super::support::read(CARD, &[]).unwrap();
    let spec = card.of::<EthernetSpec>().unwrap();
    program_for(spec.handlers.as_ref().unwrap().hpu.core, None, Some(code), None)
}

fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap()
}

/// Returns the path of a datagram of 100 bytes from node 0 to the program of node 1. With `handlers`, node 1's card
/// runs them on it.
fn journey(handlers: Option<Handlers>, rules: &str) -> (Path, Vec<RuleReport>) {
    let mut rig = Rig::new(CARD, 2, &IDEAL);
    if let Some(handlers) = handlers {
        let handling = rig.hosts[1].node.handling().unwrap();
        assert_eq!(handling.install(rule(rules), &handlers, &[0; 64]), Ok(0));
    }
    let path = Rc::new(RefCell::new(None));
    rig.program(0, async |user| {
        let socket = user.open(SocketKind::Datagram);
        user.sim.until(nicety_types::Time::from_ps(1_000_000_000)).await;
        user.restart();
        user.send_to(socket, &[7; 100], at(1, 9)).await.unwrap();
    });
    let seen = path.clone();
    rig.program(1, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        assert_eq!(user.recv_from(socket, 2000).await.unwrap().0, vec![7; 100]);
        seen.replace(Some(user.path.get()));
    });
    rig.run();
    (path.take().unwrap(), rig.report(1).rules)
}

#[test]
fn a_frame_takes_its_rule_and_its_handler_longer() {
    let (plain, none) = journey(None, "");
    // The start takes 16 cycles, an addition 1 cycle, the return 2 cycles, and the end 4 cycles. A cycle takes a
    // nanosecond.
    let handler_time = Duration::from_ns(16 + 1 + 2 + 4);
    let matching = Duration::from_ns(2);
    let (passed, reports) = journey(Some(handler(Code::new().returns(HOST))), "udp dport=9");
    assert_eq!(passed.total(stages::MATCH), matching);
    assert_eq!(passed.total(stages::HANDLER), handler_time);
    assert_eq!(passed.total(stages::HANDLER_QUEUED), Duration::ZERO);
    let longer = passed.at().since(plain.at());
    let all = |path: &Path| path.stages().collect::<Vec<_>>();
    // Every frame is compared with the rules, even if there are none.
    assert_eq!(plain.total(stages::MATCH), matching);
    assert_eq!(longer, handler_time, "{:?} {:?}", all(&plain), all(&passed));
    let all = RuleReport { rule: "udp dport=9".into(), frames: 1, to_host: 1, ..RuleReport::default() };
    assert_eq!((none, reports), (vec![], vec![all]));
    let (other, reports) = journey(Some(handler(Code::new().returns(DROP))), "udp dport=10");
    assert_eq!(other.at(), plain.at());
    assert_eq!(reports[0], RuleReport { rule: "udp dport=10".into(), ..RuleReport::default() });
}

/// Sends frames with these first payload bytes and lengths to a card with this handler. Returns the card's reports and
/// counters, the handler's failures, and the end of the run.
fn offered(handlers: &Handlers, frames: &[(u8, usize)], more: &[&str]) -> Offered {
    let mut rig = Rig::new(CARD, 2, more);
    let node = &rig.hosts[1].node;
    node.handling().unwrap().install(rule("ethertype=0x88b5"), handlers, &[0; 64]).unwrap();
    let frames = frames.to_vec();
    let count = frames.len() as u64;
    rig.program(0, async move |user| {
        let mut frames = frames.into_iter();
        let next = |frame: &mut Vec<u8>| {
            let (first, len) = frames.next()?;
            frame.clear();
            frame.resize(len, 0);
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame[14] = first;
            Some(DueTime::Wire)
        };
        assert_eq!(user.node.offer(NodeId(1), next, &Cell::new(false)).await.packets, count);
    });
    let summary = rig.run();
    let report = rig.report(1);
    let handling = rig.hosts[1].node.handling().unwrap();
    let failures = handling.frames().failures().into_iter().map(|failure| failure.text).collect();
    Offered {
        rule: report.rules[0].clone(),
        received: report.card.frames_received + report.card.ring_full,
        channels: report.channels,
        sent: report.card.frames_sent,
        nobodys: report.card.unknown_destination,
        link: rig.hosts[1].node.busy().link,
        failures,
        end: summary.end.ps(),
    }
}

#[derive(Debug, PartialEq)]
struct Offered {
    rule: RuleReport,
    received: u64,
    channels: Vec<u64>,
    sent: u64,
    nobodys: u64,
    link: Duration,
    failures: Vec<String>,
    end: u64,
}

/// Returns byte 14 of the frame, and addresses the frame to station 0.
fn as_it_says() -> Handlers {
    handler(Code::new().with(&[lw(A5, 0, A0), sb(ZERO, 5, A5), lbu(A0, 14, A5), ret()]))
}

#[test]
fn frames_go_where_their_handler_says() {
    let found = offered(&as_it_says(), &[(0, 60), (1, 60), (1, 1518), (2, 60), (2, 100), (2, 61)], &[]);
    let RuleReport { frames, to_host, to_wire, dropped, failed, .. } = found.rule;
    assert_eq!((frames, dropped, to_host, to_wire, failed), (6, 1, 2, 3, 0));
    assert_eq!((found.received, found.sent, found.failures.len()), (2, 3, 0));
    // Frames that a handler sends to its own card's address leave the card, but no station takes them. Outgoing frames
    // have as many bytes on the wire as arriving ones.
    let found = offered(&handler(Code::new().returns(WIRE)), &[(0, 60), (0, 1518)], &[]);
    assert_eq!((found.rule.to_wire, found.sent), (2, 2));
    assert_eq!((found.nobodys, found.link), (2, Duration::from_ps(80 * (60 + 24 + 1518 + 24))));
    let to_third = handler(Code::new().returns(0x103));
    let found = offered(&to_third, &[(0, 60); 5], &[]);
    assert_eq!((found.rule.to_host, found.channels[3]), (5, 5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12 * ProptestConfig::default().cases / 256))]

    // With any number of places and cores, no frame is lost or duplicated. The same frames give the same run.
    #[test]
    fn each_frame_has_one_fate(
        frames in prop::collection::vec((0u8..4, 60usize..1519), 1..200),
        cores in 1u64..5,
        places in 1u64..20,
    ) {
        let (cores, places) = (format!("hpu.cores={cores}"), format!("buffer.packets={places}"));
        let found = offered(&as_it_says(), &frames, &[&cores, &places]);
        let with = |action| frames.iter().filter(|(first, _)| *first == action).count() as u64;
        let RuleReport { frames: all, to_host, to_wire, dropped, failed, .. } = found.rule;
        prop_assert_eq!((dropped, to_host, to_wire, failed), (with(0), with(1), with(2), with(3)));
        prop_assert_eq!(all, frames.len() as u64);
        prop_assert_eq!((found.received, found.sent), (with(1), with(2)));
        prop_assert_eq!(&offered(&as_it_says(), &frames, &[&cores, &places]), &found);
    }
}

#[test]
fn a_frame_may_become_longer_and_shorter() {
    // The handler adds eight bytes before the frame, removes twelve bytes at its start, and resizes it to 90 bytes.
    // Then byte 10 of the frame is the action.
    let code = Code::new()
        .with(&[mv(S0, A0)])
        .small(A0, 8)
        .command(PUSH)
        .small(A0, 12)
        .command(PULL)
        .small(A0, 90)
        .command(RESIZE)
        .with(&[lw(A5, 0, S0), lw(A4, 4, S0), addi(T0, ZERO, 90), bne(A4, T0, 12), lbu(A0, 10, A5), ret()])
        .returns(-1);
    let found = offered(&handler(code), &[(1, 60), (1, 300)], &[]);
    assert_eq!((found.rule.to_host, found.received, found.failures), (2, 2, vec![]));
}

/// Frames of 60 bytes grow to 90 bytes. Byte 59 is from the frame, and later bytes are zeros.
#[test]
fn a_longer_frame_keeps_its_bytes_and_has_zeros_behind_them() {
    let grown = |at| {
        let code = Code::new()
            .with(&[mv(S0, A0), lw(A5, 0, A0), addi(T0, ZERO, 7), sb(T0, 59, A5)])
            .small(A0, 90)
            .command(RESIZE);
        code.with(&[lw(A5, 0, S0), lbu(A0, at, A5), ret()])
    };
    // The handler returns the byte as its action. The action 7 is invalid, and 0 drops the frame.
    let kept = offered(&handler(grown(59)), &[(1, 60)], &[]);
    assert!(kept.failures[0].contains("returned 7"), "{:?}", kept.failures);
    for at in [60, 75, 89] {
        let zero = offered(&handler(grown(at)), &[(1, 60); 20], &[]);
        assert_eq!((zero.rule.dropped, &zero.failures), (20, &vec![]));
    }
}

#[test]
fn errors_of_handlers_are_named() {
    let resize = |bytes| Code::new().set(A0, bytes).command(RESIZE).returns(WIRE);
    for (code, text) in [
        (
            resize(13),
            "rule 'ethertype=0x88b5': frame handler sent a frame of 13 bytes on; frames have 14 to 1518",
        ),
        (resize(1519), "frame_resize to 1519 bytes; the frame has room for 1 to 1518, at pc 0x1d00000c"),
        (resize(0), "frame_resize to 0 bytes"),
        (
            Code::new().small(A0, 65).command(PUSH).returns(HOST),
            "frame handler stopped: frame_push of 65 bytes, but 64 are left before the frame (hpu.headroom is 64)",
        ),
        (Code::new().small(A0, 60).command(PULL).returns(HOST), "frame_pull of 60 bytes from a frame of 60"),
        (
            Code::new().small(A0, 8).command(PUSH).set(A0, 1520).command(RESIZE).returns(HOST),
            "a frame of 1520 bytes on",
        ),
        (Code::new().returns(7), "returned 7, which is none of FRAME_DROP"),
        (Code::new().returns(0x120), "returned FRAME_QUEUE(32), and the host has receive channels 0 to 31"),
        (Code::new().returns(-1), "returned FRAME_FAIL"),
        (Code::new().with(&[lw(A5, 0, A0), lbu(A0, 60, A5), ret()]), "load of 1 byte"),
        (Code::new().with(&[lw(A5, 0, A0), lbu(A0, -1, A5), ret()]), "load of 1 byte"),
        (Code::new().with(&[sw(ZERO, 0, A0), ret()]), "the header"),
        (Code::new().command(0x110), "frame.h"),
        (Code::new().with(&[beq(ZERO, ZERO, 0)]), "cycle"),
    ] {
        let found = offered(&handler(code), &[(0, 60)], &["hpu.cycle_limit=1000"]);
        assert_eq!((found.rule.failed, found.received, found.sent), (1, 0, 0), "{text}");
        let [failure] = &found.failures[..] else { panic!("{text}: {:?}", found.failures) };
        assert!(failure.contains(text), "{failure} instead of {text}");
    }
}

#[test]
fn rules_have_limits() {
    let rig = Rig::new(CARD, 2, &["hpu.rules=2", "hpu.words=3"]);
    let handling = rig.hosts[0].node.handling().unwrap();
    let drop = handler(Code::new().returns(DROP));
    let install = |text: &str| handling.install(rule(text), &drop, &[]);
    let refused = |text: &str| install(text).unwrap_err().to_string();
    assert_eq!(
        refused("udp sport=1 dport=2"),
        "rule 'udp sport=1 dport=2' compares 4 words of a frame, but the card compares at most 3; compare \
         fewer words, or raise hpu.words"
    );
    // The longest frame has 1500 bytes of IP, and 1518 bytes with a tag. The last word is at 1512.
    assert_eq!(
        refused("udp or word@1516&ff=1"),
        "rule 'udp or word@1516&ff=1': offset 1516 is beyond every frame of the card; the last word is at \
         1512; write a smaller offset, or raise frames.mtu"
    );
    let longer = Rig::new(CARD, 2, &["frames.mtu=9000 B", "receive.buffer=16 KiB"]);
    let longer = longer.hosts[0].node.handling().unwrap();
    assert_eq!(longer.install(rule("word@9012=1"), &drop, &[]), Ok(0));
    assert!(longer.install(rule("word@9016=1"), &drop, &[]).unwrap_err().to_string().contains("is at 9012"));
    assert_eq!(install("udp"), Ok(0));
    assert!(refused("udp").starts_with("rules 'udp' and 'udp' overlap"));
    let overlap = refused("udp dport=53");
    assert!(
        overlap.starts_with("rules 'udp' and 'udp dport=53' overlap: a frame with word@12=08004500 word@20="),
        "{overlap}"
    );
    assert!(refused("any").contains("overlap"));
    assert_eq!(install("tcp"), Ok(1));
    assert_eq!(install("arp"), Err(InstallError::TooMany { limit: 2 }));
    assert_eq!(handling.state(2), Err(InstallError::NoSuchRule { number: 2 }));
    let rig = Rig::new(CARD, 2, &["hpu.memory=256 B"]);
    let error = rig.hosts[0].node.handling().unwrap().install(rule("any"), &drop, &[0; 257]).unwrap_err();
    assert!(error.to_string().contains("257 bytes of HPU memory"), "{error}");
    assert!(Rig::new("ethernet-100g", 2, &[]).hosts[0].node.handling().is_none());
}

#[test]
fn features_of_messages_are_refused() {
    for (text, expected) in [
        ("hpu.scheduling=home-cluster", "frames belong to no messages"),
        ("hpu.interface=pspin", "handlers of frames are not written for PsPIN"),
        ("link.gap=0 ps/B", "a frame takes a wire some time"),
    ] {
        let error = super::support::read(CARD, &[text]).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}
