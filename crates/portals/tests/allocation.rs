//! Tests that a message allocates no memory after the interface has handled a similar message.

mod common;

use common::*;
use nicety_portals::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed unchanged to the system's allocator, and counting allocates no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what the system's allocator requires.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Uses each part of the target: a use-once entry, an unexpected header, events, counts, a triggered put and its
/// acknowledgement.
fn message(b: &mut Bench, md: MdHandle, threshold: u64) {
    let options = MeOptions::USE_ONCE | MeOptions::EVENT_CT_COMM;
    b.append(Me { ct: Some(b.ct), ..me(1, options) });
    let request = PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 8, PEER, 0, 1) };
    b.ni.trigger(&request.into(), b.ct, threshold, &mut b.effects).unwrap();
    let header = Header { ack: AckRequest::Full, ..put(1, 8) };
    let delivery = b.arrive(&header).unwrap();
    b.complete(&delivery);
    let out = b.effects.drain().find_map(|e| if let Effect::Start(out) = e { Some(out) } else { None });
    let out = out.expect("the threshold is reached");
    b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
    let ack = Header { kind: HeaderKind::Ack, source: PEER, target: NODE, ..out.header };
    assert_eq!(b.ni.arrive(&ack, &mut b.effects), Arrival::Acknowledged);
    b.receive(&header); // unexpected
    b.append(me(1, MeOptions::USE_ONCE));
    b.effects.clear();
    b.ni.eq_consumed(b.eq, 16).unwrap();
}

/// Uses a triggered get and a triggered swap at both ends, with flow control. Then it searches, and fills a queue.
fn replies(b: &mut Bench, md: MdHandle, pt: u32, eq: EqHandle) {
    let request = |header: &Header| Header { pt, target: NODE, source: PEER, ..*header };
    let get = GetRequest::new(md, 8, PEER, pt, 1);
    let operand = Operand::new(&[0; 8]).unwrap();
    let atomic = Atomic::new(AtomicOp::Mswap, Datatype::Int64).unwrap();
    let put = PutRequest::new(md, 8, PEER, pt, 1);
    let swap = FetchRequest { get_md: md, local_get_offset: 0, put, atomic, operand };
    b.ni.trigger(&get.into(), b.ct, 0, &mut b.effects).unwrap();
    b.ni.trigger(&Request::Swap(swap), b.ct, 0, &mut b.effects).unwrap();
    for _ in 0..2 {
        let Some(&Effect::Start(out)) = b.effects.as_slice().first() else { panic!("it is due") };
        let reply = b.receive(&request(&out.header)).reply().unwrap();
        b.ni.sent(out.operation, FailType::Ok, &mut b.effects).unwrap();
        let reply = Header { source: PEER, target: NODE, ..reply };
        let Arrival::Reply(reply) = b.ni.arrive(&reply, &mut b.effects) else { panic!("it is awaited") };
        b.ni.complete_reply(&reply, FailType::Ok, &mut b.effects).unwrap();
        let second = b.effects.as_slice().iter().skip(1).find(|e| matches!(e, Effect::Start(_))).copied();
        b.effects.clear();
        if let Some(second) = second {
            b.effects.push(second);
        }
    }
    b.ni.eq_consumed(eq, 8).unwrap();
    let all = Me { options: MeOptions::OP_GET | MeOptions::OP_PUT, ..me(1, MeOptions::empty()) };
    for op in [SearchOp::Only, SearchOp::Delete] {
        b.ni.me_search(pt, all, op, &mut b.effects).unwrap();
    }
    b.ni.arrive(&Header { match_bits: 2, ..request(&common::put(2, 8)) }, &mut b.effects);
    assert_eq!(b.ni.pt_enabled(pt), Ok(false));
    b.ni.pt_enable(pt).unwrap();
    b.ni.eq_consumed(eq, 8).unwrap();
    b.ni.eq_consumed(b.eq, 16).unwrap();
    b.effects.clear();
}

#[test]
fn gets_swaps_searches_and_flow_control_allocate_nothing() {
    let mut b = bench_with(Limits { features: Features::all(), ..Limits::default() });
    let md = b.ni.md_bind(Md { length: 100, eq: Some(b.eq), ..Md::default() }).unwrap();
    let eq = b.ni.eq_alloc(8).unwrap();
    let pt = b.ni.pt_alloc_with(None, Some(eq), PtOptions::FLOWCTRL).unwrap();
    let options = MeOptions::OP_GET | MeOptions::OP_PUT;
    b.ni.me_append(pt, Me { options, ..me(1, options) }, List::Overflow, &mut b.effects).unwrap();
    b.effects.clear();
    let count = || ALLOCATIONS.with(Cell::get);
    replies(&mut b, md, pt, eq);
    replies(&mut b, md, pt, eq);
    let before = count();
    for _ in 0..100 {
        replies(&mut b, md, pt, eq);
    }
    assert_eq!(count() - before, 0);
}

#[test]
fn a_message_in_steady_state_allocates_nothing() {
    let mut b = bench();
    let md = b.ni.md_bind(Md { length: 100, eq: Some(b.eq), ..Md::default() }).unwrap();
    b.append_overflow(Me { ignore_bits: !0, ..me(0, MeOptions::empty()) });
    let count = || ALLOCATIONS.with(Cell::get);
    let before = count();
    message(&mut b, md, 1);
    assert!(count() > before, "the count works");
    message(&mut b, md, 2);
    let before = count();
    for threshold in 3..103 {
        message(&mut b, md, threshold);
    }
    assert_eq!(count() - before, 0);
}
