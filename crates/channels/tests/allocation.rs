//! Tests that a message allocates no memory after the two ends have exchanged a similar message.

mod ends;

use ends::*;
use nicety_channels::*;
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

/// Exchanges messages of both kinds in both directions, and selections, all with deadlines.
fn messages(e: &mut Ends, pages: &[Page], size: u32) {
    let (buffer, soon) = (Buffer { address: 0, bytes: size }, Some(9));
    e.host.send(T, e.channel, b"abc", soon, &mut e.h).unwrap();
    e.card.read(C, ID, 3, soon, &mut e.c).unwrap();
    settle(e, pages);
    e.host.receive(T, e.channel, 3, soon, &mut e.h).unwrap();
    e.card.write(C, ID, b"abc", soon, &mut e.c).unwrap();
    settle(e, pages);
    e.host.send_indirect(T, e.channel, buffer, soon, &mut e.h).unwrap();
    e.card.select(C, &[Guard { from: ID, want: Want::Indirect(buffer) }], soon, &mut e.c).unwrap();
    settle(e, pages);
    let guards = [Guard { from: e.channel, want: Want::Indirect(buffer) }];
    e.host.select(T, &guards, soon, &mut e.h).unwrap();
    e.card.write_indirect(C, ID, buffer, soon, &mut e.c).unwrap();
    settle(e, pages);
    assert!(!e.host.is_blocked(T) && !e.card.is_blocked(C));
}

#[test]
fn messages_allocate_nothing() {
    let pages: Vec<_> = (0..20).map(|i| Page::new(i * 4096, 4096).unwrap()).collect();
    let mut e = Ends::new();
    messages(&mut e, &pages, 20 * 4096);
    messages(&mut e, &pages, 20 * 4096);
    let before = ALLOCATIONS.get();
    for _ in 0..10 {
        messages(&mut e, &pages, 20 * 4096);
    }
    assert_eq!(ALLOCATIONS.get(), before);
}
