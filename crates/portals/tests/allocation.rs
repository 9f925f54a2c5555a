//! A message allocates nothing once the interface has seen one like it.

mod common;

use common::*;
use nicety_portals::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the count beside it allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One message through everything a message can touch: a use-once entry, an unexpected header, events,
/// counts, a triggered put, its acknowledgement.
fn message(b: &mut Bench, md: MdHandle, threshold: u64) {
    let options = MeOptions::USE_ONCE | MeOptions::EVENT_CT_COMM;
    b.append(Me { ct: Some(b.ct), ..me(1, options) });
    let request = PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 8, PEER, 0, 1) };
    b.ni.triggered_put(&request, b.ct, threshold, &mut b.effects).unwrap();
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
