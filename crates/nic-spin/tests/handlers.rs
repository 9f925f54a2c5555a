//! Handlers: their order, the effects of their results, their failures, and the cores on which they run.

use crate::support::code::{Code, echo, number, payload, program, put, result, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_core::ProgramFailure;
use nicety_nic_processors::{Handlers, map};
use nicety_nic_spin::CallError;
use nicety_portals::{Event, EventKind, FailType};
use std::cell::RefCell;
use std::rc::Rc;

/// The offsets in the state of the texts that the header handler and the payload handler print.
const HEADER: i32 = 64;
const PAYLOAD: i32 = 80;
const COMPLETION: i32 = 96;

fn state() -> Vec<u8> {
    let mut state = vec![0; 128];
    for (at, text) in [(HEADER, "header"), (PAYLOAD, "payload"), (COMPLETION, "completion")] {
        state[at as usize..at as usize + text.len()].copy_from_slice(text.as_bytes());
    }
    state
}

fn header(value: i32) -> Code {
    Code::enter().print(HEADER).returns(value)
}

fn packet(value: i32) -> Code {
    Code::enter().print(PAYLOAD).returns(value)
}

fn completion(value: i32) -> Code {
    Code::enter_completion().print(COMPLETION).returns(value)
}

/// The outcome of one message.
struct Delivered {
    event: Event,
    memory: Vec<u8>,
    texts: Vec<String>,
    failures: Vec<ProgramFailure>,
    rig: Rig,
}

/// Rank 0 puts `bytes` to an entry of rank 1 that has `room` bytes. The handlers process this message.
fn deliver(overrides: &[&str], handlers: &Handlers, bytes: &[u8], room: usize) -> Delivered {
    let mut rig = Rig::new(overrides);
    let bytes = bytes.to_vec();
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&bytes), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    let (result, handlers) = (Rc::new(RefCell::new(None)), handlers.clone());
    let note = result.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0xee; room]);
        b.append_with(entry(&memory, 5), &handlers, &state()).await.unwrap();
        b.start().await;
        let event = b.event(EventKind::Put).await;
        b.parts();
        *note.borrow_mut() = Some((event, b.read(&memory)));
    });
    rig.run();
    let (event, memory) = result.take().unwrap();
    Delivered { event, memory, texts: rig.texts(), failures: rig.failures(), rig }
}

#[test]
fn header_then_payload_then_completion() {
    let handlers = program(
        Some(header(result::PROCESS_DATA)),
        Some(packet(result::SUCCESS)),
        Some(completion(result::SUCCESS)),
    );
    for (len, packets) in [(0, 0), (1, 1), (4096, 1), (4097, 2), (20_000, 5)] {
        let delivered = deliver(&[], &handlers, &pattern(len, 1), 20_000);
        let mut expected = vec!["header"];
        expected.extend(vec!["payload"; packets]);
        expected.push("completion");
        assert_eq!(delivered.texts, expected, "{len} B");
        let log = delivered.rig.log();
        assert!(log.is_sorted_by_key(|line| line.time), "{log:?}");
        let event = delivered.event;
        assert_eq!((event.fail, event.rlength, event.mlength), (FailType::Ok, len as u64, len as u64));
        assert_eq!(
            delivered.memory,
            vec![0xee; 20_000],
            "handlers that store nothing leave memory as it was"
        );
        assert_eq!(delivered.failures, []);
        assert_eq!(delivered.rig.nodes[1].card.processors().handler_statistics().runs, packets as u64 + 2);
    }
}

#[test]
fn a_header_handlers_result_decides_about_the_data() {
    let bytes = pattern(9000, 2);
    let (kept, untouched) = (bytes.clone(), vec![0xee; 9000]);
    let all = ["header", "payload", "payload", "payload", "completion"];
    for (value, texts, memory, fail, mlength) in [
        (2, &all[..], &untouched, FailType::Ok, 9000),
        (4, &["header", "completion"], &kept, FailType::Ok, 9000),
        (6, &["header", "completion"], &untouched, FailType::Ok, 0),
        (-1, &["header"], &untouched, FailType::HandlerError, 0),
        (-2, &["header"], &untouched, FailType::HandlerError, 0),
        (0, &["header"], &untouched, FailType::HandlerError, 0),
        (77, &["header"], &untouched, FailType::HandlerError, 0),
    ] {
        let handlers =
            program(Some(header(value)), Some(packet(result::SUCCESS)), Some(completion(result::SUCCESS)));
        let delivered = deliver(&[], &handlers, &bytes, 9000);
        assert_eq!(delivered.texts, texts, "{value}");
        assert!(delivered.memory == *memory, "{value}");
        assert_eq!((delivered.event.fail, delivered.event.mlength), (fail, mlength), "{value}");
        assert_eq!(delivered.failures.len(), usize::from(!fail.is_ok()));
        let text = match value {
            -1 => "header handler returned FAIL",
            -2 => "header handler returned SEGV",
            0 => "header handler returned 0, which is none of PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
            77 => "header handler returned 77, which is none of PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
            _ => continue,
        };
        assert_eq!(delivered.failures[0].text, text);
        assert_eq!((delivered.failures[0].node.0, delivered.failures[0].hpu), (1, Some(0)));
        assert_eq!(delivered.rig.nodes[1].card.processors().handler_statistics().failed, 1);
    }
}

#[test]
fn results_of_payload_and_completion_handlers() {
    for (value, mlength, text) in [
        (0, 100, ""),
        (6, 0, ""),
        (-1, 0, "payload handler returned FAIL"),
        (-2, 0, "payload handler returned SEGV"),
        (1, 0, "payload handler returned 1, which is none of SUCCESS, DROP, FAIL or SEGV"),
        (2, 0, "payload handler returned 2, which is none of SUCCESS, DROP, FAIL or SEGV"),
    ] {
        let handlers = program(None, Some(packet(value)), Some(completion(result::SUCCESS)));
        let delivered = deliver(&[], &handlers, &pattern(100, 2), 100);
        let failed = !text.is_empty();
        let texts: &[&str] = if failed { &["payload"] } else { &["payload", "completion"] };
        assert_eq!(delivered.texts, texts, "{value}");
        assert_eq!(delivered.event.fail.is_ok(), !failed);
        assert_eq!(delivered.event.mlength, mlength, "{value}");
        assert_eq!(delivered.failures.iter().map(|f| f.text.as_str()).collect::<String>(), text);
    }
    for (value, text) in [
        (0, ""),
        (-1, "completion handler returned FAIL"),
        (-2, "completion handler returned SEGV"),
        (6, "completion handler returned 6, which is none of SUCCESS, FAIL or SEGV"),
    ] {
        let handlers = program(Some(header(result::PROCEED)), None, Some(completion(value)));
        let delivered = deliver(&[], &handlers, &pattern(100, 2), 100);
        assert_eq!(delivered.memory, pattern(100, 2), "the data was deposited before");
        assert_eq!(delivered.event.fail.is_ok(), text.is_empty(), "{value}");
        assert_eq!(delivered.failures.iter().map(|f| f.text.as_str()).collect::<String>(), text);
    }
}

#[test]
fn without_a_payload_handler_data_goes_to_host_memory() {
    for header in [None, Some(header(result::PROCESS_DATA))] {
        let delivered =
            deliver(&[], &program(header, None, Some(completion(0))), &pattern(10_000, 3), 10_000);
        assert_eq!(delivered.memory, pattern(10_000, 3));
        assert_eq!(delivered.texts.last().unwrap(), "completion");
    }
}

/// Returns a completion handler that writes the number of dropped bytes to the first word of the message's host memory.
fn show_dropped() -> Code {
    Code::enter_completion().with(&[sw(A0, 0, S0)]).publish(4).returns(0)
}

#[test]
fn the_completion_handler_is_told_what_was_dropped() {
    // The handler drops every packet except the first: lw t2, offset; li a0, DROP; bnez over; li a0, SUCCESS.
    let first_only =
        Code::enter().with(&[lw(T2, 8, A0), addi(A0, ZERO, 6), bne(T2, ZERO, 8), addi(A0, ZERO, 0), ret()]);
    let delivered =
        deliver(&[], &program(None, Some(first_only), Some(show_dropped())), &pattern(10_000, 4), 10_000);
    assert_eq!(word(&delivered.memory, 0), 10_000 - 4096);
    assert_eq!(delivered.event.mlength, 4096);
    // If the header handler drops the message, all bytes that would be kept otherwise count as dropped.
    let delivered =
        deliver(&[], &program(Some(header(6)), None, Some(show_dropped())), &pattern(10_000, 4), 6000);
    assert_eq!(word(&delivered.memory, 0), 6000);
    assert_eq!((delivered.event.rlength, delivered.event.mlength), (10_000, 0));
    // Truncated bytes do not count as dropped by a handler.
    let delivered =
        deliver(&[], &program(None, Some(packet(0)), Some(show_dropped())), &pattern(10_000, 4), 6000);
    assert_eq!(word(&delivered.memory, 0), 0);
    assert_eq!((delivered.event.rlength, delivered.event.mlength), (10_000, 6000));
}

#[test]
fn handlers_see_truncated_lengths() {
    // The handler adds its packet's length to one word of the state, and 1 to the next word.
    let add = Code::enter().with(&[
        lw(T0, 4, A0),
        amoadd_w(ZERO, T0, S0),
        addi(T1, S0, 4),
        addi(T0, ZERO, 1),
        amoadd_w(ZERO, T0, T1),
    ]);
    let show = Code::enter_completion().publish(8).returns(0);
    let delivered =
        deliver(&[], &program(None, Some(add.returns(0)), Some(show.clone())), &pattern(20_000, 5), 5000);
    assert_eq!(word(&delivered.memory, 0), 5000);
    assert_eq!(word(&delivered.memory, 4), 2, "packets without kept bytes run no handler");
    // The header handler sees the message's length, its truncated length, and the packet's length.
    let lengths = Code::enter().with(&[
        lw(T0, 4, A0),
        sw(T0, 0, S0),
        lw(T0, 36, A0),
        sw(T0, 4, S0),
        lw(T0, 44, A0),
        sw(T0, 8, S0),
        lw(T0, 8, A0),
        sw(T0, 12, S0),
        lw(T0, 12, A0),
        sw(T0, 16, S0),
        lw(T0, 16, A0),
        sw(T0, 20, S0),
    ]);
    let show = Code::enter_completion().publish(24).returns(0);
    let handlers = program(Some(lengths.returns(result::DROP)), None, Some(show));
    let delivered = deliver(&[], &handlers, &pattern(20_000, 5), 3000);
    let words: Vec<_> = (0..6).map(|i| word(&delivered.memory, 4 * i)).collect();
    assert_eq!(words, [20_000, 3000, 3000, 0, 1, 5], "length, kept, packet, source, target, match bits");
}

#[test]
fn a_deposit_is_cut_to_the_room_there_is() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(10_000, 6)), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0xee; 8192]);
        let me = nicety_portals::Me { length: 5000, ..entry(&memory, 5) };
        b.append(me).await.unwrap();
        let event = b.event(EventKind::Put).await;
        assert_eq!((event.rlength, event.mlength), (10_000, 5000));
        let bytes = b.read(&memory);
        assert_eq!(bytes[..5000], pattern(10_000, 6)[..5000]);
        assert_eq!(bytes[5000..], [0xee; 3192]);
        assert_eq!(b.memory.traffic().written, 5000);
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().truncated, 1);
}

/// Returns three programs. In each program, the handler of one kind has this code.
fn one_of_each_kind(bad: &Code) -> [(&'static str, Handlers); 3] {
    let (header, payload, completion) =
        (header(result::PROCESS_DATA), packet(result::SUCCESS), completion(result::SUCCESS));
    [
        ("header handler", program(Some(bad.clone()), Some(payload.clone()), Some(completion.clone()))),
        ("payload handler", program(Some(header.clone()), Some(bad.clone()), Some(completion))),
        ("completion handler", program(Some(header), Some(payload), Some(bad.clone()))),
    ]
}

#[test]
fn invalid_accesses_of_a_handler_fail_its_message() {
    let failures = [
        (
            Code::new().with(&[lw(A0, 0, ZERO)]),
            "load of 4 bytes from 0x0 outside its memory (a null pointer?)",
        ),
        (Code::new().set(T0, map::ARGUMENTS).with(&[sw(ZERO, 8, T0)]), "in the header, which is read-only"),
        (Code::new().set(T0, map::CODE).with(&[sw(ZERO, 0, T0)]), "in program memory, which is read-only"),
        (
            Code::new().set(T0, map::PACKET + 4096).with(&[lw(A0, 0, T0)]),
            "load of 4 bytes from 0x1c401000 outside",
        ),
        (
            Code::new().set(T0, map::STATE + 128).with(&[sb(A0, 0, T0)]),
            "0 bytes past the end of the state (128 bytes at 0x14000000)",
        ),
        (Code::new().set(T0, 4096).with(&[sub(SP, SP, T0), sw(ZERO, -16, SP)]), "stack overflow"),
        (Code::new().with(&[j(0)]), "loop for ever?"),
        (Code::new().with(&[0]), "illegal instruction 0x0000"),
        (Code::new().with(&[ebreak()]), "ebreak"),
        (Code::new().with(&[jalr(ZERO, ZERO, 64)]), "jump to 0x40 outside the code"),
        (
            Code::new().command(0x99),
            "ecall with a7 = 153, which is no known call; the card serves the functions of nicety.h",
        ),
        (Code::enter().at(A0, 4).command(number::FADD), "which is not a multiple of 8"),
        (Code::new().set(A0, 64).command(number::PRINTF), "load of 1 byte from 0x40 outside its memory"),
        (
            Code::new().small(A4, 16).small(A1, 0).small(A2, 0).small(A3, 0).command(number::DMA_TO_HOST),
            "store of 4 bytes to 0x10 outside",
        ),
    ];
    for (bad, text) in &failures {
        for (kind, handlers) in one_of_each_kind(bad) {
            let delivered = deliver(&["hpu.cycle_limit=1000"], &handlers, &pattern(100, 7), 100);
            let [failure] = &delivered.failures[..] else {
                panic!("{kind}, {text}: {:?}", delivered.failures)
            };
            assert!(failure.text.starts_with(&format!("{kind} stopped: ")), "{}", failure.text);
            assert!(failure.text.contains(text), "{kind}: {} instead of {text}", failure.text);
            assert!(failure.text.contains("pc 0x1d0000"), "{}", failure.text);
            assert_eq!((failure.node.0, failure.hpu), (1, Some(0)));
            assert_eq!((delivered.event.fail, delivered.event.mlength), (FailType::HandlerError, 0));
            assert!(!delivered.texts.contains(&"completion".to_string()), "{kind}");
        }
    }
}

#[test]
fn a_failed_handler_counts_as_a_failure() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let me = counted(&b.alloc(&[0; 8]), 5, b.ct);
        b.append_with(me, &payload(packet(result::FAIL)), &state()).await.unwrap();
        assert_eq!(b.count(b.ct, 1).await, Err(CallError::Failures { failures: 1, first: None }));
    });
    rig.run();
    let failures: Vec<_> = rig.failures().into_iter().map(|failure| (failure.text, failure.times)).collect();
    assert_eq!(failures, [("payload handler returned FAIL".to_owned(), 1)]);
}

#[test]
fn a_failure_that_comes_again_is_counted() {
    // Five packets arrive within 410 ns. A handler takes 1.6 us, so all packets are ready before the first handler
    // fails.
    let bad = payload(Code::new().spin(1000).returns(result::FAIL));
    let delivered = deliver(&["hpu.cores=4"], &bad, &pattern(5 * 4096, 8), 5 * 4096);
    let failures: Vec<_> =
        delivered.failures.into_iter().map(|failure| (failure.text, failure.times, failure.hpu)).collect();
    assert_eq!(failures, [("payload handler returned FAIL".to_owned(), 5, Some(0))]);
    assert_eq!(delivered.rig.nodes[1].card.processors().handler_statistics().failed, 5);
}

#[test]
fn after_a_failed_packet_the_rest_of_the_message_is_dropped() {
    // The second packet's handler fails, and later handlers do not run. With one core, they have not begun.
    let bad_second = Code::enter().with(&[lw(S1, 8, A0)]).print(PAYLOAD).with(&[
        addi(A0, ZERO, 0),
        beq(S1, ZERO, 8),
        addi(A0, ZERO, -1),
        ret(),
    ]);
    let delivered = deliver(&[], &payload(bad_second), &pattern(5 * 4096, 8), 5 * 4096);
    assert_eq!(delivered.texts, ["payload", "payload"]);
    assert_eq!(delivered.event.fail, FailType::HandlerError);
    // One failed handler is counted. A failed handler does not stop the card.
    assert_eq!(delivered.rig.nodes[1].card.processors().handler_statistics().failed, 1);
}

#[test]
fn cores_run_payload_handlers_at_once_and_the_lowest_idle_one_takes_the_next() {
    // The instructions mv, addi, addi, addi precede the print, at cycle 4. Then come 120 rounds of 4 cycles: 4 + 2 +
    // 478 + 3 = 487 cycles, or 194.8 ns.
    let slow = Code::enter().print(PAYLOAD).spin(120).returns(0);
    let handlers = payload(slow);
    let rounds = |cores: usize| {
        let cores = format!("hpu.cores={cores}");
        let delivered = deliver(&[&cores, "host.post=0 ns"], &handlers, &pattern(4 * 4096, 9), 4 * 4096);
        let print = |line: &nicety_nic_core::LogLine| (line.time.since(START).ps() - 1_600, line.hpu);
        delivered.rig.log().iter().map(print).collect::<Vec<_>>()
    };
    // In ns, packet k is complete at 250 + 33.4 + 81.92 (k + 1). The first match takes 30, and each later match takes
    // 2.
    let matched = [395_320, 449_240, 531_160, 613_080];
    assert_eq!(rounds(4), [(matched[0], 0), (matched[1], 1), (matched[2], 2), (matched[3], 0)]);
    assert_eq!(
        rounds(2),
        [(matched[0], 0), (matched[1], 1), (matched[0] + 194_800, 0), (matched[1] + 194_800, 1),]
    );
    assert_eq!(rounds(1), [0, 1, 2, 3].map(|k| (matched[0] + k * 194_800, 0)));
}

#[test]
fn waiting_for_a_core_is_a_part_of_the_path_only_where_another_message_has_it() {
    let slow = Code::enter().spin(1000).returns(0);
    let slow = payload(slow);
    for same in [true, false] {
        let mut rig = Rig::new(&["hpu.cores=1"]);
        rig.program(0, async move |a| {
            let requests = match same {
                true => vec![a.request(&a.alloc(&[0; 8192]), 5)],
                false => vec![a.request(&a.alloc(&[0; 4096]), 5), a.request(&a.alloc(&[0; 4096]), 5)],
            };
            a.start().await;
            for request in &requests {
                a.put(request).await.unwrap();
            }
        });
        let slow = slow.clone();
        rig.program(1, async move |b| {
            b.append_with(entry(&b.alloc(&[0; 8192]), 5), &slow, &[]).await.unwrap();
            b.start().await;
            for _ in 0..if same { 1 } else { 2 } {
                b.event(EventKind::Put).await;
            }
            b.parts();
            let path = b.path.get();
            // The instructions are mv, li, 999 rounds of 4, one round of 2, li and ret: 4004 cycles.
            let run = 4004 * 400;
            match same {
                true => {
                    assert_eq!(path.total(nicety_nic_processors::stages::HANDLER_QUEUED).ps(), 0);
                    assert_eq!(path.total(nicety_nic_processors::stages::HANDLER).ps(), 2 * run);
                }
                false => {
                    assert!(path.total(nicety_nic_processors::stages::HANDLER_QUEUED).ps() > run / 2);
                    assert_eq!(path.total(nicety_nic_processors::stages::HANDLER).ps(), run);
                }
            }
        });
        rig.run();
    }
}

#[test]
fn handlers_on_many_cores_count_exactly() {
    let amo = Code::enter().with(&[addi(T0, ZERO, 1), amoadd_w(ZERO, T0, S0)]).returns(0);
    let lr_sc =
        Code::enter().with(&[lr_w(T0, S0), addi(T0, T0, 1), sc_w(T1, T0, S0), bne(T1, ZERO, -12)]).returns(0);
    // PtlHandlerFAdd works on the pair of words. Its increment is in a2 and a3.
    let fadd = Code::enter().at(A0, 0).at(A1, 8).small(A2, 1).small(A3, 0).command(number::FADD).returns(0);
    for (name, count) in [("amoadd", amo), ("lr, sc", lr_sc), ("FAdd", fadd)] {
        let show = Code::enter_completion().publish(8).returns(0);
        let handlers = program(None, Some(count), Some(show));
        // Packets of 8 B arrive every 160 ps, so several handlers overlap.
        let delivered =
            deliver(&["packet.payload=8 B", "match.further=0 ns"], &handlers, &pattern(8 * 300, 1), 8 * 300);
        assert_eq!(word(&delivered.memory, 0), 300, "{name}");
        assert_eq!(delivered.failures, []);
    }
}

#[test]
fn a_printed_line_has_time_node_and_processor() {
    let handlers = payload(Code::enter().print(PAYLOAD).returns(0));
    let delivered = deliver(&[], &handlers, &[1; 8], 8);
    let [line] = &delivered.rig.log()[..] else { panic!("one line") };
    // The handler begins after post, bus, link and match. The instructions mv, addi, addi, addi precede the print.
    assert_eq!(line.time, after(378_560 + 4 * 400));
    assert_eq!((line.node.0, line.hpu, line.text.as_str()), (1, 0, "payload"));
}

#[test]
fn messages_of_one_initiator_complete_in_their_order() {
    let slow = payload(Code::enter().spin(5000).returns(0));
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (first, second) = (a.request(&a.alloc(&[1; 8]), 5), a.request(&a.alloc(&[2; 8]), 6));
        a.start().await;
        a.put(&first).await.unwrap();
        a.put(&second).await.unwrap();
    });
    rig.program(1, async move |b| {
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &slow, &[]).await.unwrap();
        let memory = b.alloc(&[0; 8]);
        b.append(entry(&memory, 6)).await.unwrap();
        b.start().await;
        let first = b.event(EventKind::Put).await;
        // The slow handler takes 1 + 2 + 4 * 5000 - 2 + 3 cycles, from the first match at 313.56 ns on.
        let completed = 313_560 + 20_004 * 400;
        assert_eq!((first.match_bits, b.sim.now()), (5, after(completed + 250_000)));
        let second = b.event(EventKind::Put).await;
        assert_eq!((second.match_bits, b.sim.now()), (6, after(completed + 250_000)));
        assert_eq!(b.read(&memory), [2; 8], "its bytes were there long before");
    });
    rig.run();
    // The path of the second message is its own path, with the wait for the first message.
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (first, second) = (a.request(&a.alloc(&[1; 8]), 5), a.request(&a.alloc(&[2; 8]), 6));
        a.start().await;
        a.put(&first).await.unwrap();
        a.until(after(1_000_000)).await;
        a.put(&second).await.unwrap();
    });
    rig.program(1, async |b| {
        let slow = payload(Code::enter().spin(5000).returns(0));
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &slow, &[]).await.unwrap();
        b.append(counted(&b.alloc(&[0; 8]), 6, b.ct)).await.unwrap();
        b.start().await;
        b.count(b.ct, 1).await.unwrap();
        assert_eq!(b.path.get().origin(), after(1_000_000));
        let completed = 313_560 + 20_004 * 400;
        assert_eq!(
            b.parts(),
            [
                ("bus", 250_000),
                ("link", 33_560),
                ("match", 30_000),
                ("deposit", 250_125),
                ("completion order", completed - (1_313_560 + 125))
            ]
        );
    });
    rig.run();
}

#[test]
fn phantom_payloads_take_the_same_time() {
    let time = |phantom: bool, len: u64, handlers: Option<Handlers>| {
        let mut rig = Rig::new(&[]);
        let end = Rc::new(RefCell::new(None));
        let note = end.clone();
        let alloc = move |node: &Node, len| match phantom {
            true => node.memory.allocate_phantom(len).unwrap(),
            false => node.memory.allocate(len).unwrap(),
        };
        rig.program(0, async move |a| {
            let (out, back) = (alloc(&a, len), alloc(&a, len));
            a.append(counted(&back, 9, a.ct)).await.unwrap();
            let request = a.request(&out, 5);
            a.start().await;
            a.put(&request).await.unwrap();
            a.count(a.ct, len.div_ceil(4096).max(1)).await.unwrap();
            *note.borrow_mut() = Some((a.sim.now(), a.path.get()));
        });
        rig.program(1, async move |b| {
            let memory = alloc(&b, len);
            match handlers {
                Some(handlers) => {
                    b.append_with(entry(&memory, 5), &handlers, &put(9, 0, 0, false)).await.unwrap();
                }
                None => {
                    b.append(entry(&memory, 5)).await.unwrap();
                    b.event(EventKind::Put).await;
                    for part in 0..len.div_ceil(4096).max(1) {
                        let request = b.request(&memory, 9);
                        let request = nicety_portals::PutRequest { length: len.min(4096), ..request };
                        let _ = part;
                        b.put(&request).await.unwrap();
                    }
                }
            }
        });
        rig.run();
        assert_eq!(rig.failures(), []);
        let traffic = rig.nodes.each_ref().map(|node| node.memory.traffic());
        (end.take().unwrap(), traffic)
    };
    for len in [8, 4096, 100_000] {
        assert_eq!(time(true, len, None), time(false, len, None), "{len} B by the host");
        let echo = Some(payload(echo()));
        assert_eq!(time(true, len, echo.clone()), time(false, len, echo), "{len} B by a handler");
    }
}

#[test]
fn a_handler_cannot_touch_a_phantom() {
    let touch = |bad: Code, phantom_target: bool| {
        let mut rig = Rig::new(&[]);
        rig.program(0, async move |a| {
            let out = match phantom_target {
                true => a.alloc(&[0; 64]),
                false => a.memory.allocate_phantom(64).unwrap(),
            };
            let request = a.request(&out, 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.memory.allocate_phantom(64).unwrap();
            b.append_with(entry(&memory, 5), &payload(bad), &[0; 64]).await.unwrap();
            assert_eq!(b.event(EventKind::Put).await.fail, FailType::HandlerError);
        });
        rig.run();
        rig.failures()[0].text.clone()
    };
    let text = touch(Code::new().with(&[lw(T0, 0, A0), lw(T0, 8, T0)]), false);
    assert!(text.starts_with("payload handler stopped: the payload is phantom, 64 bytes long"), "{text}");
    assert!(text.contains("send it from real memory"), "{text}");
    // The handler uses the phantom packet as the format of a print.
    let text = touch(Code::new().with(&[lw(A0, 0, A0)]).command(number::PRINTF), false);
    assert!(text.contains("the payload is phantom"), "{text}");
    // The handler reads phantom host memory.
    let fetch = Code::enter().small(A0, 0).at(A1, 0).small(A2, 8).small(A3, 0).small(A4, 0);
    let text = touch(fetch.command(number::DMA_FROM_HOST).returns(0), true);
    assert!(text.contains("the 8 bytes of host memory that it fetched are phantom"), "{text}");
}
