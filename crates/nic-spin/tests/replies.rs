//! Gets and atomic operations: times calculated by hand, to the picosecond, and the resulting memory. Times in comments
//! are in nanoseconds. The numbers are those of the card spin-discrete.

use crate::support::code::{Code, number, program, put, result, word};
use crate::support::*;
use nicety_host::Allocation;
use nicety_hpu::asm::*;
use nicety_portals::{
    Atomic, AtomicOp, AtomicRequest, Datatype, EventKind, FailType, FetchRequest, GetRequest, MdOptions, Me,
    MeOptions, Operand, PutRequest, Request,
};
use nicety_types::NodeId;
use std::cell::RefCell;
use std::rc::Rc;

const COUNTED: MdOptions = MdOptions::EVENT_CT_REPLY.union(MdOptions::EVENT_SEND_DISABLE);
const TARGET: NodeId = NodeId(1);

/// Returns a match entry that allows every operation.
fn open(memory: &Allocation, match_bits: u64) -> Me {
    let entry = entry(memory, match_bits);
    Me { options: entry.options | MeOptions::OP_GET, ..entry }
}

/// The state of rank 0 after it has noticed the reply, and of rank 1 after it has noticed the event of the request.
struct Asked {
    ps: u64,
    parts: Vec<(&'static str, u64)>,
    mine: Vec<u8>,
    theirs: Vec<u8>,
}

/// Rank 0 sends a request to rank 1. `mine` has the first bytes of rank 0's memory, and `target` those of rank 1's
/// entry.
fn ask(
    overrides: &[&str],
    mine: Vec<u8>,
    target: Vec<u8>,
    request: impl FnOnce(&Node, &Allocation) -> Request + 'static,
) -> Asked {
    let mut rig = Rig::new(overrides);
    let result: Rc<RefCell<Option<(u64, _, _)>>> = Rc::default();
    let note = result.clone();
    rig.program(0, async move |a| {
        let memory = a.alloc(&mine);
        let request = request(&a, &memory);
        a.start().await;
        a.post(request).await.unwrap();
        a.count(a.ct, 1).await.unwrap();
        let (ps, parts) = (a.sim.now().since(START).ps(), a.parts());
        assert_eq!(a.event(EventKind::Reply).await.fail, FailType::Ok);
        *note.borrow_mut() = Some((ps, parts, a.read(&memory)));
    });
    let theirs: Rc<RefCell<Vec<u8>>> = Rc::default();
    let note = theirs.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&target);
        b.append(open(&memory, 5)).await.unwrap();
        let mut path = b.path.get();
        let what = || "the request".to_string();
        b.card.eq_wait(&b.cpus, &mut path, b.eq, |_| true, what).await.unwrap();
        *note.borrow_mut() = b.read(&memory);
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    let (ps, parts, mine) = result.take().unwrap();
    Asked { ps, parts, mine, theirs: theirs.take() }
}

fn get(length: u64) -> impl FnOnce(&Node, &Allocation) -> Request {
    move |a, memory| GetRequest::new(a.counted_md(memory, COUNTED), length, TARGET, PT, 5).into()
}

/// Returns a fetch-and-atomic operation on the first half of the memory. Its reply goes to the second half.
fn fetch(op: AtomicOp, datatype: Datatype) -> impl FnOnce(&Node, &Allocation) -> Request {
    move |a, memory| {
        let (md, half) = (a.counted_md(memory, COUNTED), memory.len() / 2);
        let put = PutRequest::new(md, half, TARGET, PT, 5);
        let atomic = Atomic::new(op, datatype).unwrap();
        let operand = Operand::NONE;
        Request::FetchAtomic(FetchRequest { get_md: md, local_get_offset: half, put, atomic, operand })
    }
}

#[test]
fn a_get_of_8_bytes() {
    let asked = ask(&[], vec![0; 8], pattern(8, 1), get(8));
    // Post 65. Command over the bus 250. Header without payload over the link 33.4. Match 30. Request and data over the
    // bus 500; the 0.125 of the data are hidden behind the 0.160 of the link. Link 33.56. Reply to its operation 2.
    // Deposit and count 0.125 + 250. Notice 65.
    assert_eq!(asked.ps, 65_000 + 250_000 + 33_400 + 30_000 + 500_000 + 33_560 + 2_000 + 250_125 + 65_000);
    let expected = [
        ("post", 65_000),
        ("bus", 250_000),
        ("fetch", 500_000),
        ("link", 33_400 + 33_560),
        ("match", 32_000),
        ("deposit", 250_125),
        ("notice", 65_000),
    ];
    assert_eq!(asked.parts, expected);
    assert_eq!(asked.mine, pattern(8, 1));
}

#[test]
fn a_get_of_64_kib() {
    let asked = ask(&[], vec![0; 65_536], pattern(65_536, 1), get(65_536));
    // As above, but 65 536 bytes take 20 ps per byte on the link, which is slower than the bus with 15.6. The deposit
    // of the last packet of 4096 bytes takes 63.898.
    assert_eq!(
        asked.ps,
        65_000 + 250_000 + 33_400 + 30_000 + 500_000 + 1_310_720 + 33_400 + 2_000 + 63_898 + 250_000 + 65_000
    );
    assert_eq!(asked.mine, pattern(65_536, 1));
}

#[test]
fn a_get_of_nothing() {
    let asked = ask(&[], vec![9; 8], pattern(8, 1), get(0));
    // There are no bytes to fetch or to deposit.
    assert_eq!(asked.ps, 65_000 + 250_000 + 33_400 + 30_000 + 33_400 + 2_000 + 250_000 + 65_000);
    assert_eq!(asked.mine, vec![9; 8]);
}

#[test]
fn a_fetch_and_add_of_8_bytes() {
    let mut mine = 5u64.to_le_bytes().to_vec();
    mine.extend([0; 8]);
    let asked = ask(&[], mine, 37u64.to_le_bytes().into(), fetch(AtomicOp::Sum, Datatype::Uint64));
    // Post 65. Command and operand over the bus 250; the 0.125 of the operand are hidden behind the 0.160 of the link.
    // Link 33.56. Match 30. All 8 bytes of host memory are at the card after 500.125. The sum takes no time. Link
    // 33.56. Reply to its operation 2. Deposit and count 250.125. Notice 65.
    assert_eq!(asked.ps, 65_000 + 250_000 + 33_560 + 30_000 + 500_125 + 33_560 + 2_000 + 250_125 + 65_000);
    let expected = [
        ("post", 65_000),
        ("bus", 250_000),
        ("fetch", 500_125),
        ("link", 67_120),
        ("match", 32_000),
        ("deposit", 250_125),
        ("notice", 65_000),
    ];
    assert_eq!(asked.parts, expected);
    assert_eq!(asked.mine[8..], 37u64.to_le_bytes());
    assert_eq!(asked.theirs, 42u64.to_le_bytes());
}

#[test]
fn computing_costs_what_the_spec_says() {
    let asked =
        ask(&["atomic.compute=10 ns"], vec![1; 16], vec![1; 8], fetch(AtomicOp::Bxor, Datatype::Uint8));
    assert_eq!(asked.ps, 65_000 + 250_000 + 33_560 + 30_000 + 510_125 + 33_560 + 2_000 + 250_125 + 65_000);
    assert!(asked.parts.contains(&("atomic", 10_000)), "{:?}", asked.parts);
    assert_eq!(asked.theirs, [0; 8]);
}

#[test]
fn a_conditional_swap_carries_its_operand() {
    for (payload, operand, swapped) in [("4 KiB", 37u64, true), ("8 B", 37, true), ("8 B", 36, false)] {
        let mut mine = 5u64.to_le_bytes().to_vec();
        mine.extend([0; 8]);
        let request = move |a: &Node, memory: &Allocation| {
            let md = a.counted_md(memory, COUNTED);
            let atomic = Atomic::new(AtomicOp::Cswap, Datatype::Uint64).unwrap();
            let put = PutRequest::new(md, 8, TARGET, PT, 5);
            let operand = Operand::new(&operand.to_le_bytes()).unwrap();
            Request::Swap(FetchRequest { get_md: md, local_get_offset: 8, put, atomic, operand })
        };
        let set = format!("packet.payload={payload}");
        let asked = ask(&[&set], mine, 37u64.to_le_bytes().into(), request);
        assert_eq!(asked.mine[8..], 37u64.to_le_bytes());
        assert_eq!(asked.theirs, if swapped { 5u64 } else { 37 }.to_le_bytes());
    }
}

#[test]
fn an_atomic_longer_than_the_packet_buffer_goes_through() {
    // 512 packets go through a buffer of two slots. So do the packets of the reply.
    let overrides = ["packet.payload=8 B", "buffer.packets=2"];
    let (data, target) = (pattern(4096, 1), pattern(4096, 2));
    let mut mine = data.clone();
    mine.extend(vec![0; 4096]);
    let asked = ask(&overrides, mine, target.clone(), fetch(AtomicOp::Sum, Datatype::Uint8));
    let sum: Vec<u8> = data.iter().zip(&target).map(|(a, b)| a.wrapping_add(*b)).collect();
    assert_eq!(asked.theirs, sum);
    assert_eq!(asked.mine[4096..], target);
}

#[test]
fn atomics_come_one_after_another() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    let times: Rc<RefCell<Vec<u64>>> = Rc::default();
    let note = times.clone();
    rig.program(0, async move |a| {
        let memory = a.alloc(&[1; 16]);
        let request = fetch(AtomicOp::Sum, Datatype::Uint64)(&a, &memory);
        a.start().await;
        for _ in 0..3 {
            a.post(request).await.unwrap();
        }
        for count in 1..=3 {
            a.count(a.ct, count).await.unwrap();
            note.borrow_mut().push(a.sim.now().since(START).ps());
        }
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(open(&memory, 5)).await.unwrap();
        for _ in 0..3 {
            b.event(EventKind::FetchAtomic).await;
        }
        assert_eq!(b.read(&memory), [3; 8]);
    });
    rig.run();
    let times = times.take();
    // The old value is at the card after 500.125, and the sum is handed to the bus after 0.125. Then the next operation
    // may read.
    assert_eq!([times[1] - times[0], times[2] - times[1]], [500_250; 2]);
    assert_eq!(times[0], 250_000 + 33_560 + 30_000 + 500_125 + 33_560 + 2_000 + 250_125);
}

#[test]
fn triggered_gets_and_atomics_start_on_the_card() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let (memory, pulled) = (a.alloc(&7u64.to_le_bytes()), a.alloc(&[0; 8]));
        let flag = a.card.ct_alloc().unwrap();
        let signal = a.alloc(&[0; 8]);
        a.append(counted(&signal, 9, flag)).await.unwrap();
        let atomic = Atomic::new(AtomicOp::Sum, Datatype::Uint64).unwrap();
        let put = PutRequest::new(a.md(&memory), 8, TARGET, PT, 5);
        a.triggered(AtomicRequest { put, atomic }, flag, 1).await.unwrap();
        let md = a.counted_md(&pulled, COUNTED);
        a.triggered(GetRequest::new(md, 8, TARGET, PT, 6), flag, 1).await.unwrap();
        a.start().await;
        a.count(a.ct, 1).await.unwrap();
        // The signal is in the packet buffer at 65 + 250 + 33.4, and its match takes 30. The card increments the count
        // at once, and the get begins at this time. The earlier atomic operation, which fetches for 500, does not delay
        // the get. Link 33.4, match 30, fetch 500, link 33.56, 2, deposit 250.125, notice 65.
        let signalled = 65_000 + 250_000 + 33_400 + 30_000;
        assert_eq!(
            a.sim.now(),
            after(signalled + 33_400 + 30_000 + 500_000 + 33_560 + 2_000 + 250_125 + 65_000)
        );
        assert_eq!(a.read(&pulled), pattern(8, 4));
    });
    rig.program(1, async |b| {
        let (sum, source, nothing) = (b.alloc(&35u64.to_le_bytes()), b.alloc(&pattern(8, 4)), b.alloc(&[]));
        b.append(open(&sum, 5)).await.unwrap();
        b.append(open(&source, 6)).await.unwrap();
        let request = PutRequest::new(b.md(&nothing), 0, NodeId(0), PT, 9);
        b.start().await;
        b.put(&request).await.unwrap();
        b.event(EventKind::Atomic).await;
        assert_eq!(b.read(&sum), 42u64.to_le_bytes());
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn refusals_are_reported() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[0; 8]);
        let md = a.counted_md(&memory, COUNTED);
        a.start().await;
        a.post(GetRequest::new(md, 8, TARGET, PT, 4)).await.unwrap();
        a.post(GetRequest::new(md, 8, TARGET, PT, 5)).await.unwrap();
        a.post(GetRequest::new(md, 8, TARGET, 7, 5)).await.unwrap();
        let fails = [a.event(EventKind::Reply).await, a.event(EventKind::Reply).await, {
            a.event(EventKind::Reply).await
        }];
        let fails = fails.map(|event| (event.fail, event.mlength));
        let expected = [(FailType::OpViolation, 0), (FailType::Dropped, 0), (FailType::Dropped, 0)];
        assert_eq!(fails, expected);
        assert_eq!(a.card.ct_get(a.ct).failure, 3);
        assert_eq!(a.card.pending_operations(), 0);
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(entry(&memory, 4)).await.unwrap();
    });
    rig.run();
}

#[test]
fn beyond_their_limit_requests_are_refused_and_nothing_hangs() {
    let mut rig = Rig::new(&["limits.replies=2", "host.post=0 ns"]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[0; 4096]);
        let md = a.counted_md(&memory, COUNTED);
        a.start().await;
        for _ in 0..5 {
            a.post(GetRequest::new(md, 4096, TARGET, PT, 5)).await.unwrap();
        }
        let mut fails = Vec::new();
        for _ in 0..5 {
            fails.push(a.event(EventKind::Reply).await.fail);
        }
        fails.sort_by_key(|fail| *fail as u8);
        use FailType::{Dropped, Ok};
        assert_eq!(fails, [Ok, Ok, Dropped, Dropped, Dropped]);
        // The slots of the earlier messages are free again.
        a.post(GetRequest::new(md, 4096, TARGET, PT, 5)).await.unwrap();
        assert_eq!(a.event(EventKind::Reply).await.fail, Ok);
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 4096]);
        b.append(open(&memory, 5)).await.unwrap();
    });
    rig.run();
}

/// Returns a header handler that gets `length` bytes into host memory at offset 16, by a command at cycle 6. The
/// command uses the `nicety_put_t` at the start of the state. Then the handler stores the command's result and the
/// message's request type.
fn pull(length: i32, options: i32, returned: i32) -> Code {
    Code::enter()
        .small(A0, 16)
        .small(A1, length)
        .at(A2, 0)
        .small(A3, options)
        .command(number::GET_TO_HOST)
        .with(&[sw(A0, 64, S0)])
        .at(A0, 64)
        .small(A1, 0)
        .small(A2, 4)
        .small(A3, 0)
        .small(A4, 0)
        .command(number::DMA_TO_HOST)
        .returns(returned)
}

#[test]
fn a_handler_gets_into_host_memory() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let source = a.alloc(&pattern(64, 6));
        a.append(open(&source, 9)).await.unwrap();
        let request = a.request(&a.alloc(&[]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
        assert_eq!(a.event(EventKind::Get).await.mlength, 8);
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0xff; 32]);
        let handlers = program(Some(pull(8, 0, result::PROCEED)), None, None);
        let me = Me { ct: Some(b.ct), ..entry(&memory, 5) };
        b.append_with(me, &handlers, &[put(9, 0, 24, true), vec![0; 64]].concat()).await.unwrap();
        b.start().await;
        b.count(b.ct, 1).await.unwrap();
        // The put without payload has matched at 65 + 250 + 33.4 + 30. The get request is handed over six cycles of 0.4
        // later. Link 33.4, match 30, fetch 500, link 33.56, 2, deposit and count 250.125, notice 65.
        assert_eq!(
            b.sim.now(),
            after(378_400 + 2_400 + 33_400 + 30_000 + 500_000 + 33_560 + 2_000 + 250_125 + 65_000)
        );
        assert_eq!(b.read(&memory)[..4], [0; 4], "PTL_OK");
        assert_eq!(b.read(&memory)[16..24], pattern(64, 6)[24..32]);
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn invalid_gets_of_a_handler_fail() {
    // Each case has the number of bytes, the options, the target rank, and the expected result.
    for (length, options, target, expected) in [
        (8, 0, 0, result::OK),
        (17, 0, 0, result::SEGV),
        (8, 1, 0, result::SEGV),
        (8, 2, 0, result::SEGV),
        (8, 0, 1, result::OK),
        (8, 0, 2, result::ARG_INVALID),
    ] {
        let mut rig = Rig::new(&[]);
        rig.program(0, async |a| {
            let request = a.request(&a.alloc(&[]), 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&[0xff; 32]);
            let handlers = program(Some(pull(length, options, result::PROCEED)), None, None);
            let me = Me { ct: Some(b.ct), ..entry(&memory, 5) };
            b.append_with(me, &handlers, &[put(9, target, 0, true), vec![0; 64]].concat()).await.unwrap();
            b.event(EventKind::Put).await;
            assert_eq!(b.read(&memory)[..4], expected.to_le_bytes());
            if expected == result::OK {
                // At the target, no entry matches the get.
                assert!(b.count(b.ct, 1).await.is_err());
            }
        });
        rig.run();
        let failures: Vec<_> = rig.failures().into_iter().map(|failure| failure.text).collect();
        match expected {
            result::OK => assert_eq!(failures, ["a handler's get of 8 bytes failed: PTL_NI_DROPPED"]),
            _ => assert_eq!(failures, [""; 0]),
        }
    }
}

/// Returns a header handler that stores three values at the start of the entry's memory. The values are the message's
/// request type, the message's length, and the length of its payload. The handler returns `returned`.
fn look(returned: i32) -> Code {
    Code::enter()
        .with(&[lw(T0, 0, A0), sw(T0, 0, S0), lw(T0, 4, A0), sw(T0, 4, S0), lw(T0, 44, A0), sw(T0, 8, S0)])
        .publish(12)
        .returns(returned)
}

#[test]
fn header_handlers_see_what_a_message_asks_for() {
    type Make = Box<dyn FnOnce(&Node, &Allocation) -> Request>;
    let makes: [(u32, u32, Make); 4] = [
        (1, 8, Box::new(get(8))),
        (3, 8, Box::new(fetch(AtomicOp::Sum, Datatype::Uint64))),
        (4, 8, Box::new(swap)),
        (
            2,
            16,
            Box::new(|a: &Node, memory: &Allocation| {
                let atomic = Atomic::new(AtomicOp::Sum, Datatype::Uint64).unwrap();
                AtomicRequest { put: PutRequest::new(a.md(memory), 16, TARGET, PT, 5), atomic }.into()
            }),
        ),
    ];
    fn swap(a: &Node, memory: &Allocation) -> Request {
        let md = a.counted_md(memory, COUNTED);
        let atomic = Atomic::new(AtomicOp::Mswap, Datatype::Uint64).unwrap();
        let put = PutRequest::new(md, 8, TARGET, PT, 5);
        let operand = Operand::new(&[0xff; 8]).unwrap();
        Request::Swap(FetchRequest { get_md: md, local_get_offset: 8, put, atomic, operand })
    }
    for (number, length, make) in makes {
        let mut rig = Rig::new(&[]);
        rig.program(0, async move |a| {
            let memory = a.alloc(&[1; 16]);
            let request = make(&a, &memory);
            a.start().await;
            a.post(request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&[0; 64]);
            // The payload handler would fail the message, but the card executes atomic operations itself.
            let spoil = Code::enter().returns(result::FAIL);
            let handlers = program(Some(look(result::PROCESS_DATA)), Some(spoil), None);
            let me = Me { length: 64, ..open(&memory, 5) };
            b.append_with(me, &handlers, &[0; 64]).await.unwrap();
            let mut path = b.path.get();
            let what = || "the request".to_string();
            let event = b.card.eq_wait(&b.cpus, &mut path, b.eq, |_| true, what).await.unwrap();
            assert_eq!((event.fail, event.mlength), (FailType::Ok, u64::from(length)));
            // The atomic operation finds the bytes that the handler wrote.
            let ones = if number == 2 || number == 3 { 0x0101_0101 } else { 0 };
            let seen = b.read(&memory);
            if number != 4 {
                assert_eq!((word(&seen, 0), word(&seen, 4)), (number + ones, length + ones));
            } else {
                assert_eq!(seen[..8], [1; 8]);
            }
            // A get has no payload. A swap also has its operand.
            let payload = [0, 16 + 0x0101_0101, 8, 16][number as usize - 1];
            assert_eq!(word(&seen, 8), payload, "type {number}");
        });
        rig.run();
        assert_eq!(rig.failures(), []);
    }
}

#[test]
fn a_header_handler_drops_a_get_and_its_initiator_is_told() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[1; 16]);
        let requests = [get(8)(&a, &memory), fetch(AtomicOp::Sum, Datatype::Uint64)(&a, &memory)];
        a.start().await;
        for request in requests {
            a.post(request).await.unwrap();
            assert_eq!(a.event(EventKind::Reply).await.fail, FailType::Dropped);
        }
        assert_eq!(a.read(&memory), [1; 16]);
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[7; 64]);
        let handlers = program(Some(Code::enter().returns(result::DROP)), None, None);
        b.append_with(open(&memory, 5), &handlers, &[0; 8]).await.unwrap();
        assert_eq!(b.event(EventKind::Get).await.fail, FailType::Dropped);
        assert_eq!(b.event(EventKind::FetchAtomic).await.fail, FailType::Dropped);
        assert_eq!(b.read(&memory), [7; 64]);
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_completion_handler_that_fails_after_the_reply_fails_the_targets_event_only() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[1; 8]);
        let request = get(8)(&a, &memory);
        a.start().await;
        a.post(request).await.unwrap();
        assert_eq!(a.event(EventKind::Reply).await.fail, FailType::Ok);
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[7; 64]);
        let handlers = program(None, None, Some(Code::enter_completion().returns(result::FAIL)));
        b.append_with(open(&memory, 5), &handlers, &[0; 8]).await.unwrap();
        assert_eq!(b.event(EventKind::Get).await.fail, FailType::HandlerError);
    });
    rig.run();
    assert_eq!(rig.failures().len(), 1);
    assert_eq!(rig.nodes[0].card.statistics().dropped_total(), 0);
}
