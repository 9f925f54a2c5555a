//! Message contexts for handlers. The tests use one message more than there are contexts.

use crate::support::code::{Code, number, payload, program, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_processors::{ApplicationConfig, ApplicationId, Attach, Handlers, State};
use nicety_portals::{AckRequest, EventKind, FailType, List, Md, Me, PtOptions, PutRequest};
use nicety_types::{Duration, NodeId};
use std::cell::Cell;
use std::rc::Rc;

/// A portal table entry with flow control.
const CONTROLLED: u32 = 2;

/// Returns a payload handler that takes 4 * `rounds` + 4 cycles.
fn slow(rounds: u32) -> Handlers {
    payload(Code::enter().spin(rounds).returns(0))
}

/// Rank 0 puts `count` messages of `len` bytes as fast as possible. The first byte of a message is the message's
/// number. Returns the time at which rank 1 saw the event of each message, with the number in memory at the event's
/// offset. Also returns the number of dropped messages.
fn flood(overrides: &[&str], handlers: Handlers, count: u64, len: u64) -> (Vec<(u64, u64)>, u64) {
    let mut all = vec!["host.post=0 ns", "host.notice=0 ns"];
    all.extend(overrides);
    let mut rig = Rig::new(&all);
    rig.program(0, async move |a| {
        let memory = a.alloc(&vec![1; len as usize]);
        let request = a.request(&memory, 5);
        a.start().await;
        for number in 0..count {
            a.put(&PutRequest { hdr_data: number, ..request }).await.unwrap();
        }
    });
    let seen = Rc::new(std::cell::RefCell::new(Vec::new()));
    let note = seen.clone();
    rig.program(1, async move |b| {
        b.append_with(entry(&b.alloc(&vec![0; len as usize]), 5), &handlers, &[0; 8]).await.unwrap();
        b.start().await;
        // Waits until no message has arrived for a long time.
        b.sim.delay(Duration::from_us(2000)).await;
        while b.card.statistics().matched > note.borrow().len() as u64 {
            let event = b.event(EventKind::Put).await;
            note.borrow_mut().push((event.hdr_data, event.mlength));
        }
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    (seen.take(), rig.nodes[1].card.statistics().dropped_total())
}

#[test]
fn without_flow_control_a_message_waits_for_a_context() {
    for contexts in [1, 2, 3, 100] {
        for (count, len) in [(20, 8), (10, 10_000)] {
            let limit = format!("hpu.contexts={contexts}");
            let (seen, dropped) = flood(&[&limit], slow(1000), count, len);
            let expected: Vec<_> = (0..count).map(|number| (number, len)).collect();
            assert_eq!((seen, dropped), (expected, 0), "{contexts} contexts, {len} B");
        }
    }
}

#[test]
fn one_context_is_one_message_at_a_time() {
    // Each message takes 4004 cycles of 0.4 ns, one after another. The context is free again when the message is
    // complete.
    let mut rig = Rig::new(&["hpu.contexts=1", "host.post=0 ns"]);
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&[1; 8]), 5);
        a.start().await;
        for _ in 0..3 {
            a.put(&request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let handlers = payload(Code::enter().print(0).spin(1000).returns(0));
        b.append_with(entry(&b.alloc(&[0; 8]), 5), &handlers, b"x\0").await.unwrap();
    });
    rig.run();
    let times: Vec<_> = rig.log().iter().map(|line| line.time.since(START).ps()).collect();
    let first = 250_000 + 160 + 33_400 + 30_000 + 4 * 400;
    // The instructions are mv, three for the print, li, 999 rounds of 4, one round of 2, li and ret.
    let run = (4 + 1 + 2 + 999 * 4 + 2 + 3) * 400;
    assert_eq!(times.len(), 3);
    assert_eq!(times[0], first);
    for pair in times.windows(2) {
        assert!(pair[1] - pair[0] >= run - 3 * 400 && pair[1] - pair[0] <= run + 3 * 400, "{times:?}, {run}");
    }
}

#[test]
fn a_packet_buffer_full_of_messages_that_wait_is_no_deadlock_while_handlers_run() {
    // The completion handler holds the only context for a long time, but no slot of the packet buffer.
    let handlers = program(None, None, Some(Code::enter_completion().spin(20_000).returns(0)));
    let (seen, dropped) = flood(&["hpu.contexts=1", "buffer.packets=4"], handlers, 12, 8);
    assert_eq!((seen.len(), dropped), (12, 0));
}

#[test]
fn a_packet_buffer_full_of_messages_that_wait_is_no_deadlock_while_transfers_are_under_way() {
    // The completion handler ends at once. Its message keeps the only context until its read has returned.
    let read = Code::enter_completion().small(A0, 0).at(A1, 0).small(A2, 4).small(A3, 0).at(A4, 4);
    let handlers = program(None, None, Some(read.command(number::DMA_FROM_HOST).returns(0)));
    let (seen, dropped) = flood(&["hpu.contexts=1", "buffer.packets=4"], handlers, 12, 8);
    assert_eq!((seen.len(), dropped), (12, 0));
}

#[test]
fn with_flow_control_a_message_without_a_context_disables_its_entry() {
    let mut rig = Rig::new(&["hpu.contexts=1"]);
    let enabled = Rc::new(Cell::new(false));
    let again = enabled.clone();
    rig.program(0, async move |a| {
        let memory = a.alloc(&[1; 8]);
        let md = a
            .card
            .md_bind(Md { start: memory.address(), length: 8, eq: Some(a.eq), ..Md::default() })
            .unwrap();
        let request =
            PutRequest { ack: AckRequest::Full, ..PutRequest::new(md, 8, NodeId(1), CONTROLLED, 5) };
        a.start().await;
        for _ in 0..3 {
            a.put(&request).await.unwrap();
        }
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(a.event(EventKind::Ack).await.fail);
        }
        answers.sort_by_key(|fail| *fail as u8);
        assert_eq!(answers, [FailType::Ok, FailType::PtDisabled, FailType::PtDisabled]);
        a.until(after(500_000_000)).await;
        assert!(again.get());
        a.put(&request).await.unwrap();
        assert_eq!(a.event(EventKind::Ack).await.fail, FailType::Ok);
    });
    rig.program(1, async move |b| {
        let eq = b.card.eq_alloc(16).unwrap();
        b.card.pt_alloc_with(Some(CONTROLLED), Some(eq), PtOptions::FLOWCTRL).unwrap();
        let memory = b.alloc(&[0; 8]);
        // The completion handler shows whether flow control was triggered.
        let show = Code::enter_completion().with(&[sw(A1, 0, S0)]).publish(4).returns(0);
        let slow = Code::enter().spin(100_000).returns(0);
        let handlers = Some(b.card.attach(&program(None, Some(slow), Some(show)), &[0; 8], None).unwrap());
        let mut path = b.path.get();
        let me = Me { handlers, ..entry(&memory, 5) };
        let appending = b.card.me_append(&b.cpus, &mut path, CONTROLLED, me, List::Priority).await.unwrap();
        b.card.appended(&b.cpus, &mut path, appending).await.unwrap();
        let what = || "an event".to_string();
        let event = b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        assert_eq!((event.kind, event.fail), (EventKind::Put, FailType::Ok));
        assert_eq!(word(&b.read(&memory), 0), 1, "flow control was triggered while it was in flight");
        let event = b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        assert_eq!(event.kind, EventKind::PtDisabled);
        let enabling = b.card.pt_enable(&b.cpus, &mut path, CONTROLLED, true).await;
        b.card.answered(&b.cpus, &mut path, enabling, "enable an entry").await.unwrap();
        enabled.set(true);
        b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        assert_eq!(word(&b.read(&memory), 0), 0);
    });
    rig.run();
}

#[test]
fn an_application_takes_no_more_than_its_share_of_contexts() {
    // There are four contexts, and the weights are 1 and 3. The light application gets one context, so it processes one
    // message at a time. The heavy application is not delayed.
    let mut rig = Rig::new(&["hpu.contexts=4", "hpu.scheduling=weighted-fair", "host.post=0 ns"]);
    rig.program(0, async move |a| {
        let requests = [1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits));
        a.start().await;
        for _ in 0..4 {
            // The messages go to different portal table entries, so neither application's messages wait behind the
            // other's.
            a.put(&PutRequest { pt: CONTROLLED, ..requests[0] }).await.unwrap();
        }
        a.put(&requests[1]).await.unwrap();
    });
    rig.program(1, async move |b| {
        let application = |name: &str, weight| {
            b.card.application(ApplicationConfig { weight, ..ApplicationConfig::new(name) }).unwrap()
        };
        let (light, heavy) = (application("light", 1), application("heavy", 3));
        let attach = |handlers: &Handlers, application: ApplicationId| {
            let state = State::Own(&[]);
            Some(b.card.attach_as(&Attach { handlers, application, state, memory: None }).unwrap())
        };
        b.card.pt_alloc(Some(CONTROLLED), None).unwrap();
        let memory = b.alloc(&[0; 8]);
        let mut path = b.path.get();
        let me = Me { handlers: attach(&slow(50_000), light), ..entry(&memory, 1) };
        let appending = b.card.me_append(&b.cpus, &mut path, CONTROLLED, me, List::Priority).await.unwrap();
        b.card.appended(&b.cpus, &mut path, appending).await.unwrap();
        b.path.set(path);
        b.append(Me { handlers: attach(&slow(10), heavy), ..entry(&memory, 2) }).await.unwrap();
        b.start().await;
        b.event(EventKind::Put).await;
        // The light application's first handler takes 80 us. Three more of its messages wait to be matched.
        assert!(b.sim.now() < after(5_000_000), "{}", b.sim.now());
        b.sim.delay(Duration::from_us(5)).await;
        assert_eq!(b.card.statistics().matched, 2);
        b.sim.delay(Duration::from_us(400)).await;
        let runs: Vec<_> = b.card.applications().iter().map(|a| a.handlers.runs).collect();
        assert_eq!(runs, [0, 4, 1]);
    });
    rig.run();
}

#[test]
fn a_slow_application_with_flow_control_leaves_the_packet_buffer_to_others() {
    // There are eight slots, and the weights are equal. So a long message of the slow application may take four slots.
    let mut rig =
        Rig::new(&["buffer.packets=8", "hpu.scheduling=weighted-fair", "hpu.cores=1", "host.post=0 ns"]);
    rig.program(0, async move |a| {
        let (long, short) = (a.request(&a.alloc(&[0; 20 * 4096]), 1), a.request(&a.alloc(&[0; 8]), 2));
        a.start().await;
        a.put(&PutRequest { pt: CONTROLLED, ..long }).await.unwrap();
        a.put(&short).await.unwrap();
    });
    rig.program(1, async move |b| {
        let slowly = b.card.application(ApplicationConfig::new("slow")).unwrap();
        let attach = |handlers: &Handlers, application: ApplicationId| {
            let state = State::Own(&[0; 8]);
            Some(b.card.attach_as(&Attach { handlers, application, state, memory: None }).unwrap())
        };
        let eq = b.card.eq_alloc(16).unwrap();
        b.card.pt_alloc_with(Some(CONTROLLED), Some(eq), PtOptions::FLOWCTRL).unwrap();
        let memory = b.alloc(&[0; 20 * 4096]);
        let show = Code::enter_completion().with(&[sw(A0, 0, S0), sw(A1, 4, S0)]).publish(8).returns(0);
        let handlers = program(None, Some(Code::enter().spin(50_000).returns(0)), Some(show));
        let mut path = b.path.get();
        let me = Me { handlers: attach(&handlers, slowly), ..entry(&memory, 1) };
        let appending = b.card.me_append(&b.cpus, &mut path, CONTROLLED, me, List::Priority).await.unwrap();
        b.card.appended(&b.cpus, &mut path, appending).await.unwrap();
        b.path.set(path);
        let quick = b.alloc(&[0; 8]);
        let handlers = attach(&slow(10), ApplicationId::default());
        b.append(Me { handlers, ..entry(&quick, 2) }).await.unwrap();
        b.start().await;
        b.event(EventKind::Put).await;
        // One handler of 80 us runs first, of the four packets in the buffer. The other message's packets are admitted
        // at once.
        assert!(b.sim.now() < after(90_000_000), "{}", b.sim.now());
        let what = || "an event".to_string();
        let mut path = b.path.get();
        let event = b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        let (dropped, flag) = (word(&b.read(&memory), 0), word(&b.read(&memory), 4));
        assert_eq!((event.kind, dropped, flag), (EventKind::Put, 16 * 4096, 1));
        assert_eq!(event.mlength, 4 * 4096);
        let event = b.card.eq_wait(&b.cpus, &mut path, eq, |_| true, what).await.unwrap();
        assert_eq!(event.kind, EventKind::PtDisabled);
    });
    rig.run();
}
