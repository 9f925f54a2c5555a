//! Handlers that keep their match entry linked. The host gets no event of their messages until a handler ends the use
//! of the entry.

use crate::support::code::{Code, program, result};
use crate::support::*;
use nicety_nic_processors::Handlers;
use nicety_portals::{AckRequest, EventKind, FailType, Md, Me, MeOptions, PutRequest};
use nicety_types::{Duration, NodeId};

/// Returns a handler that returns the first value if the message's first byte is not zero, and the second value
/// otherwise. A first byte of zero marks the last message.
fn by_first_byte(begin: Code, values: [i32; 2]) -> Code {
    use nicety_hpu::asm::*;
    let [pending, last] = values;
    begin.with(&[addi(A0, ZERO, pending), bne(T0, ZERO, 8), addi(A0, ZERO, last), ret()])
}

/// Returns handlers. The header handler decides whether the entry stays linked.
fn header(values: [i32; 2], payload: Option<Code>) -> Handlers {
    use nicety_hpu::asm::*;
    let first = Code::enter().with(&[lw(T0, 40, A0), lbu(T0, 0, T0)]);
    program(Some(by_first_byte(first, values)), payload, None)
}

/// Returns handlers. The completion handler decides whether the entry stays linked. The payload handler has stored the
/// first byte in the state.
fn completion(values: [i32; 2]) -> Handlers {
    use nicety_hpu::asm::*;
    let keep = Code::enter().with(&[lw(T0, 0, A0), lbu(T0, 0, T0), sw(T0, 0, S0)]).returns(result::SUCCESS);
    let first = Code::enter_completion().with(&[lw(T0, 0, S0)]);
    program(None, Some(keep), Some(by_first_byte(first, values)))
}

#[test]
fn the_host_hears_of_the_message_that_ends_without_pending_and_of_none_before() {
    let keep = Code::enter().returns(result::SUCCESS);
    for handlers in [
        header([result::PROCESS_DATA_PENDING, result::PROCESS_DATA], Some(keep)),
        header([result::PROCEED_PENDING, result::PROCEED], None),
        header([result::DROP_PENDING, result::DROP], None),
        completion([result::SUCCESS_PENDING, result::SUCCESS]),
    ] {
        let mut rig = Rig::new(&[]);
        rig.program(0, async move |a| {
            a.start().await;
            for first in [1, 1, 1, 0] {
                let request = a.request(&a.alloc(&[first; 8]), 5);
                a.put(&request).await.unwrap();
                a.sim.delay(Duration::from_us(5)).await;
            }
        });
        rig.program(1, async move |b| {
            let me = Me {
                ct: Some(b.ct),
                options: entry(&b.alloc(&[0; 8]), 5).options | MeOptions::EVENT_CT_COMM,
                ..entry(&b.alloc(&[0; 8]), 5)
            };
            b.append_with(me, &handlers, &[0; 16]).await.unwrap();
            b.start().await;
            b.event(EventKind::Put).await;
            // The fourth message was posted at 15 us plus three posts. It is the only message that is counted.
            assert!(b.sim.now() > after(15_000_000), "{}", b.sim.now());
            assert_eq!(b.card.ct_get(b.ct).success, 1);
            assert_eq!(b.card.statistics().matched, 4);
        });
        rig.run();
        assert_eq!(rig.failures(), []);
    }
}

#[test]
fn an_entry_that_is_left_open_is_not_unlinked() {
    let handlers = header([result::PROCEED_PENDING, result::PROCEED], None);
    let mut rig = Rig::new(&["host.post=0 ns"]);
    rig.program(0, async move |a| {
        let requests = [1, 0].map(|first| a.request(&a.alloc(&[first; 8]), 5));
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
            a.sim.delay(Duration::from_us(5)).await;
        }
    });
    rig.program(1, async move |b| {
        // The entry has memory for two messages. The second message exhausts it while the first message keeps it
        // linked.
        let options = entry(&b.alloc(&[0; 8]), 5).options | MeOptions::MANAGE_LOCAL;
        let me = Me { options, min_free: 8, ..entry(&b.alloc(&[0; 16]), 5) };
        b.append_with(me, &handlers, &[]).await.unwrap();
        b.start().await;
        let event = b.event(EventKind::Put).await;
        assert_eq!((event.remote_offset, event.fail), (8, FailType::Ok));
        b.event(EventKind::AutoUnlink).await;
        assert!(b.sim.now() > after(5_000_000));
    });
    rig.run();
}

#[test]
fn the_initiator_of_a_pending_message_is_answered() {
    let handlers = header([result::PROCEED_PENDING, result::PROCEED], None);
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        let memory = a.alloc(&[1; 8]);
        let md = Md { start: memory.address(), length: 8, eq: Some(a.eq), ..Md::default() };
        let md = a.card.md_bind(md).unwrap();
        let target = NodeId(1);
        let request = PutRequest::new(md, 8, target, PT, 5);
        a.start().await;
        a.put(&PutRequest { ack: AckRequest::Full, ..request }).await.unwrap();
        let event = a.event(EventKind::Ack).await;
        assert_eq!((event.fail, event.mlength), (FailType::Ok, 8));
    });
    rig.program(1, async move |b| {
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &handlers, &[]).await.unwrap();
    });
    rig.run();
}

#[test]
fn a_message_that_fails_ends_what_was_pending() {
    // The last message's header handler returns FAIL.
    let handlers = header([result::PROCEED_PENDING, result::FAIL], None);
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        a.start().await;
        for first in [1, 0] {
            a.put(&a.request(&a.alloc(&[first; 8]), 5)).await.unwrap();
            a.sim.delay(Duration::from_us(5)).await;
        }
    });
    rig.program(1, async move |b| {
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &handlers, &[]).await.unwrap();
        assert_eq!(b.event(EventKind::Put).await.fail, FailType::HandlerError);
    });
    rig.run();
    assert_eq!(rig.failures().len(), 1);
}
