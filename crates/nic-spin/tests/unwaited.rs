//! Non-blocking transfers of handlers. The processor does not wait for these transfers. The packet, the message and the
//! completion handler wait instead.

use crate::support::code::{Code, number, payload, program, result, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_processors::Handlers;
use nicety_portals::{EventKind, FailType, PutRequest};
use nicety_types::Time;
use std::cell::RefCell;
use std::rc::Rc;

/// The time in ps at which the first handler of a message of 8 bytes begins. In ns: bus 250, link 33.56, match 30. The
/// next message is matched 30 ns later.
const READY: u64 = 250_000 + 33_560 + 30_000;
/// The time in ps at which the first handler of a message with a packet of 4 KiB begins.
const LONG_READY: u64 = 250_000 + 81_920 + 33_400 + 30_000;
/// The time in ps of a read of 8 bytes over the bus, with the return of the bytes.
const FETCH: u64 = 500_125;
const EVENT: u64 = 250_000;

/// Returns code for a non-blocking read of 8 bytes of host memory into the state from `local` on. Its handle goes to
/// byte 0 of the state. A payload handler that begins with this code issues the command at cycle 7, after 5 cycles for
/// the arguments and one for the number.
fn fetch(local: i32) -> Code {
    Code::new().small(A0, 16).at(A1, local).small(A2, 8).small(A3, 0).at(A4, 0).command(number::DMA_FROM_HOST)
}

/// Returns a payload handler that writes its packet to host memory by a non-blocking transfer. Its 9 instructions take
/// 9 cycles: the return takes two cycles, and the command none. The write is issued at cycle 6.
fn forward() -> Code {
    Code::new()
        .with(&[mv(A4, A1), lw(A2, 4, A0), lw(A1, 8, A0), lw(A0, 0, A0)])
        .small(A3, 0)
        .command(number::DMA_TO_HOST)
        .returns(result::SUCCESS)
}

/// Rank 1's observations: the time and the outcome of each event, and the final host memory.
#[derive(Clone, Debug, Default)]
struct Observations {
    events: Vec<(Time, FailType)>,
    /// The stages of the last message's time.
    parts: Vec<(&'static str, u64)>,
    memory: Vec<u8>,
}

/// Rank 0 puts a message of `len` bytes for each entry, at the same time and in this order. Rank 1 has these entries,
/// each with its own match bits, handlers and state.
fn run(overrides: &[&str], len: usize, entries: Vec<Handlers>) -> (Rig, Observations) {
    let mut all = vec!["host.post=0 ns", "host.notice=0 ns"];
    all.extend(overrides);
    let mut rig = Rig::new(&all);
    let count = entries.len() as u64;
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&pattern(len, 1)), 0);
        a.start().await;
        for match_bits in 0..count {
            a.put(&PutRequest { match_bits, ..request }).await.unwrap();
        }
    });
    let seen = Rc::new(RefCell::new(Observations::default()));
    let note = seen.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&pattern(len.max(512), 2));
        for (match_bits, handlers) in entries.iter().enumerate() {
            b.append_with(entry(&memory, match_bits as u64), handlers, &[0; 512]).await.unwrap();
        }
        for _ in entries {
            let event = b.event(EventKind::Put).await;
            note.borrow_mut().events.push((b.sim.now(), event.fail));
        }
        note.borrow_mut().parts = b.parts();
        note.borrow_mut().memory = b.read(&memory);
    });
    rig.run();
    (rig, seen.take())
}

#[test]
fn a_processor_is_free_while_its_packet_crosses_the_bus() {
    for len in [8, 1024, 4096] {
        let (rig, seen) = run(&[], len, vec![payload(forward())]);
        let statistics = rig.nodes[1].card.processors().handler_statistics();
        assert_eq!((statistics.instructions, statistics.cycles, statistics.stalled), (9, 9, 0), "{len} B");
        assert_eq!(seen.memory[..len], pattern(len, 1));
    }
    // The event follows the bytes, as with a blocking transfer: 63.898 ns for 4 KiB, then one latency.
    let (_, seen) = run(&[], 4096, vec![payload(forward())]);
    assert_eq!(seen.events, [(after(LONG_READY + 6 * 400 + 63_898 + EVENT), FailType::Ok)]);
}

#[test]
fn a_packet_keeps_its_slot_until_its_bytes_have_been_read() {
    // With one slot, the second message leaves after the credit has arrived that reports the first message's bytes on
    // the bus.
    let (_, seen) = run(&["buffer.packets=1"], 4096, vec![payload(forward()), payload(forward())]);
    let read = LONG_READY + 6 * 400 + 63_898;
    let second = read + 33_400 + 81_920 + 33_400 + 30_000 + 6 * 400 + 63_898;
    assert_eq!(seen.events[1], (after(second + EVENT), FailType::Ok));
    // The transfer reads the state and not the packet. So the packet's slot is freed with the handler, before the 512
    // bytes are on the bus.
    let state = Code::enter().at(A0, 0).small(A1, 0).small(A2, 512).small(A3, 0).at(A4, 0);
    let state = payload(state.command(number::DMA_TO_HOST).returns(0));
    let (_, seen) = run(&["buffer.packets=1"], 8, vec![state.clone(), state]);
    let freed = READY + 10 * 400;
    let second = freed + 33_400 + 33_560 + 30_000 + 7 * 400 + 7_988;
    assert_eq!(seen.events[1], (after(second + EVENT), FailType::Ok));
}

#[test]
fn a_slot_waits_for_every_transfer_of_its_packet() {
    // The header handler and the payload handler each write the packet to host memory. The second transfer ends 63.898
    // ns after the first.
    let header = forward().0;
    let header = Code(header[..header.len() - 2].to_vec()).returns(result::PROCESS_DATA);
    // The arguments of a header handler have the payload at offsets 40 and 44.
    let header =
        Code::new().with(&[mv(A4, A1), lw(A2, 44, A0), mv(A1, ZERO), lw(A0, 40, A0)]).with(&header.0[4..]);
    let handlers = program(Some(header), Some(forward()), None);
    let (rig, seen) = run(&["buffer.packets=1"], 4096, vec![handlers.clone(), handlers]);
    let read = LONG_READY + 6 * 400 + 2 * 63_898;
    let second = read + 33_400 + 81_920 + 33_400 + 30_000 + 6 * 400 + 2 * 63_898;
    assert_eq!(seen.events, [after(read + EVENT), after(second + EVENT)].map(|at| (at, FailType::Ok)));
    assert_eq!(rig.nodes[1].card.processors().handler_statistics().cycles, 4 * 9);
}

#[test]
fn a_completion_handler_starts_when_the_transfers_are_done() {
    let completion = Code::enter_completion()
        .print(48)
        .at(A0, 8)
        .small(A1, 0)
        .small(A2, 8)
        .small(A3, 0)
        .small(A4, 0)
        .command(number::DMA_TO_HOST)
        .returns(0);
    let handlers = program(None, Some(Code::enter().then(&fetch(8)).returns(0)), Some(completion));
    let (rig, seen) = run(&[], 8, vec![handlers]);
    let started = READY + 7 * 400 + FETCH;
    assert_eq!(rig.log()[0].time, after(started + 4 * 400));
    assert_eq!(seen.memory[..8], pattern(512, 2)[16..24], "the bytes were in the state by then");
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_message_is_complete_when_its_completion_handlers_transfers_are_done() {
    // The 8 bytes are deposited before the handler starts. This takes the bus 0.125 ns.
    let completion = Code::enter_completion().then(&fetch(8)).returns(0);
    let (_, seen) = run(&[], 8, vec![program(None, None, Some(completion))]);
    assert_eq!(seen.events, [(after(READY + 125 + 7 * 400 + FETCH + EVENT), FailType::Ok)]);
}

#[test]
fn the_wait_for_a_transfer_is_the_transfers_time() {
    let (_, seen) = run(&[], 8, vec![payload(Code::enter().then(&fetch(8)).returns(0))]);
    assert_eq!(
        seen.parts,
        [
            ("bus", 250_000),
            ("fetch", FETCH),
            ("link", 33_560),
            ("match", 30_000),
            ("handler", 7 * 400),
            ("deposit", EVENT)
        ]
    );
}

#[test]
fn a_processor_runs_the_next_handler_at_once() {
    let handler = || payload(Code::enter().print(48).then(&fetch(8)).returns(0));
    let (rig, seen) = run(&["hpu.cores=1"], 8, vec![handler(), handler(), handler()]);
    let printed: Vec<_> = rig.log().iter().map(|line| line.time).collect();
    // Each handler prints as soon as its message has been matched.
    assert_eq!(printed, [0, 1, 2].map(|i| after(READY + i * 30_000 + 4 * 400)));
    // The requests have 0 bytes, so they do not wait for each other.
    let given = READY + (4 + 6) * 400;
    assert_eq!(seen.events, [0, 1, 2].map(|i| (after(given + i * 30_000 + FETCH + EVENT), FailType::Ok)));
}

#[test]
fn a_handler_waits_for_the_places_of_transfers_of_handlers_before_it() {
    let handler = || payload(Code::enter().then(&fetch(8)).print(48).returns(0));
    let (rig, seen) = run(&["hpu.cores=1", "hpu.dma_handles=1"], 8, vec![handler(), handler()]);
    let first = READY + 7 * 400 + FETCH;
    // The second handler began 30 ns later. It continues at its next cycle, 472.925 ns later, which is cycle 1183.
    let goes_on = READY + 30_000 + 1183 * 400;
    assert_eq!(
        rig.log().iter().map(|line| line.time).collect::<Vec<_>>(),
        [after(READY + 10 * 400), after(goes_on + 3 * 400)]
    );
    assert_eq!(
        seen.events,
        [after(first + EVENT), after(first + FETCH + EVENT)].map(|at| (at, FailType::Ok))
    );
    assert_eq!(rig.nodes[1].card.processors().refused_commands(), [], "it is no fault of its own");
    assert_eq!(rig.nodes[1].card.processors().handler_statistics().stalled, 1183 - 7);
}

#[test]
fn handles_are_a_handlers_own() {
    let leaves = payload(Code::enter().then(&fetch(8)).returns(0));
    let asks = Code::enter()
        .small(A0, 0)
        .command(number::DMA_TEST)
        .with(&[sw(A0, 8, S0)])
        .small(A0, 0)
        .command(number::DMA_WAIT)
        .with(&[sw(A0, 12, S0)])
        .then(&fetch(16))
        .at(A0, 0)
        .small(A1, 32)
        .small(A2, 16)
        .small(A3, 0)
        .small(A4, 0)
        .command(number::DMA_TO_HOST)
        .returns(0);
    let (rig, seen) = run(&["hpu.cores=1"], 8, vec![leaves, payload(asks)]);
    let found = [0, 8, 12].map(|at| word(&seen.memory, 32 + at));
    assert_eq!(found, [1, 1, result::ARG_INVALID], "the second handle, done, and none to wait for");
    assert_eq!(rig.nodes[1].card.processors().refused_commands().len(), 1);
}

#[test]
fn bytes_for_the_stack_of_a_handler_that_has_ended_go_nowhere() {
    let leaves = Code::enter().then(&fetch(8)).0;
    // The handler's third instruction sets the destination. It is changed to the stack instead of the state.
    let leaves =
        Code(leaves.iter().map(|&w| if w == addi(A1, S0, 8) { addi(A1, SP, -64) } else { w }).collect());
    let keeps = Code::enter()
        .small(T2, 77)
        .with(&[sw(T2, -64, SP), sw(T2, -60, SP)])
        .spin(2000)
        .with(&[lw(T2, -64, SP), sw(T2, 0, S0), lw(T2, -60, SP), sw(T2, 4, S0)])
        .publish(8)
        .returns(0);
    let (rig, seen) = run(&["hpu.cores=1"], 8, vec![payload(leaves.returns(0)), payload(keeps)]);
    assert_eq!((word(&seen.memory, 0), word(&seen.memory, 4)), (77, 77));
    // The first message nevertheless waited for its transfer.
    assert_eq!(seen.events[0], (after(READY + 7 * 400 + FETCH + EVENT), FailType::Ok));
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_failed_handler_leaves_its_transfers_too() {
    let handler = Code::enter().then(&fetch(8)).returns(result::FAIL);
    let (rig, seen) = run(&[], 8, vec![payload(handler)]);
    assert_eq!(seen.events, [(after(READY + 7 * 400 + FETCH + EVENT), FailType::HandlerError)]);
    let statistics = rig.nodes[1].card.processors().handler_statistics();
    assert_eq!((statistics.runs, statistics.failed), (1, 1));
}

#[test]
fn bytes_without_contents_fail_the_message_of_a_handler_that_has_ended() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let memory = b.memory.allocate_phantom(64).unwrap();
        let handlers = payload(Code::enter().then(&fetch(8)).returns(0));
        b.append_with(entry(&memory, 5), &handlers, &[0; 64]).await.unwrap();
        assert_eq!(b.event(EventKind::Put).await.fail, FailType::HandlerError);
    });
    rig.run();
    let text = &rig.failures()[0].text;
    assert!(
        text.starts_with("payload handler stopped: the 8 bytes of host memory that it fetched are phantom"),
        "{text}"
    );
    let statistics = rig.nodes[1].card.processors().handler_statistics();
    assert_eq!((statistics.runs, statistics.failed), (1, 1));
}
