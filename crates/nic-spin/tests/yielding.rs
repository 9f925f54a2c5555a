//! Handlers that yield: scheduling order, resumption, and accounting.

use crate::support::code::{Code, number, payload, waited, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_processors::{ApplicationConfig, ApplicationId, Attach, HandlerStatistics, Handlers, State};
use nicety_portals::{EventKind, Me};
use nicety_types::Time;
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Appends code that stores the `time` counter, which continues between handlers. The code takes 2 cycles, and the
/// stored value is that of its first cycle.
fn time(code: Code, offset: i32) -> Code {
    code.with(&[csrrs(T0, 0xc01, ZERO), sw(T0, offset, S0)])
}

/// Returns a handler of 222 cycles. It yields at cycle 206, and stores `time` at cycles 201 and 209. Its DMA of 32
/// bytes takes 499.2 ps, or 2 cycles.
fn yields() -> Handlers {
    let before = time(Code::enter().spin(50), 16).timed(number::YIELD, 0);
    payload(time(before, 20).publish(32).returns(0))
}

/// Returns a handler of 404 cycles.
fn spins() -> Handlers {
    payload(Code::enter().spin(100).returns(0))
}

/// Returns the times at which the host sees the first and the second message, and the values that the first message's
/// handler stored. The last returned value is the time for which the path of this handler waited for the core.
fn two_on_a_core(parked: &str) -> ([Time; 2], Vec<u8>, u64) {
    let mut rig = Rig::new(&["hpu.cores=1", "host.post=0 ns", "host.notice=0 ns", parked]);
    rig.program(0, async |a| {
        let requests = [1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits));
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    let result = Rc::new(RefCell::new(None));
    let note = result.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&[0; 32]);
        b.append_with(entry(&memory, 1), &yields(), &[0; 32]).await.unwrap();
        b.append_with(entry(&b.alloc(&[0; 8]), 2), &spins(), &[]).await.unwrap();
        b.start().await;
        let (mut seen, mut queued) = ([Time::ZERO; 2], 0);
        for _ in 0..2 {
            let event = b.event(EventKind::Put).await;
            seen[event.match_bits as usize - 1] = b.sim.now();
            if event.match_bits == 1 {
                let parts = b.parts();
                queued = parts.iter().find(|(stage, _)| *stage == "handler, queued").map_or(0, |part| part.1);
            }
        }
        *note.borrow_mut() = Some((seen, b.read(&memory), queued));
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    result.take().unwrap()
}

/// The time in ps at which the first handler begins. In ns: bus 250, link 33.56, match 30.
const BEGINS: u64 = 250_000 + 33_560 + 30_000;

#[test]
fn a_waiting_handler_goes_first_and_the_wait_costs_the_other_no_cycles() {
    // The second handler begins at the first handler's cycle 206 and takes 404 cycles. Then the first handler resumes
    // for its last 16 cycles.
    let ([first, second], state, queued) = two_on_a_core("hpu.parked=1");
    // The host sees messages in matching order, so the second message waits for the first.
    assert_eq!(first, after(BEGINS + (206 + 404 + 16) * 400 + 250_000));
    assert_eq!(second, first);
    assert_eq!(queued, 404 * 400);
    assert_eq!(waited(&state, 0), (0, 0), "its cycles stand still");
    assert_eq!(word(&state, 20) - word(&state, 16), 8 + 404, "time goes on");
}

#[test]
fn without_a_place_to_be_parked_a_yield_returns_at_once() {
    let ([first, second], state, queued) = two_on_a_core("hpu.parked=0");
    assert_eq!(first, after(BEGINS + 222 * 400 + 250_000));
    assert_eq!(second, after(BEGINS + (222 + 404) * 400 + 250_000));
    assert_eq!((queued, waited(&state, 0)), (0, (0, 0)));
    assert_eq!(word(&state, 20) - word(&state, 16), 8);
}

/// Returns a handler that prints these texts, and yields between two texts.
fn says(texts: &[&str]) -> (Code, Vec<u8>) {
    let (mut code, mut state) = (Code::enter().spin(300), vec![]);
    for (i, text) in texts.iter().enumerate() {
        let at = state.len() as i32;
        if i > 0 {
            code = code.command(number::YIELD);
        }
        code = code.print(at).spin(300);
        state.extend(text.bytes().chain([0]));
    }
    (code.returns(0), state)
}

/// Returns the lines that handlers print on one core. Rank 0 sends one message after another, each to handlers of one
/// application.
fn said(overrides: &[&str], messages: &[(u32, &[&str])]) -> Vec<String> {
    let overrides: Vec<_> = overrides.iter().copied().chain(["hpu.cores=1"]).collect();
    let mut rig = Rig::new(&overrides);
    let count = messages.len();
    rig.program(0, async move |a| {
        let requests: Vec<_> = (0..count).map(|bits| a.request(&a.alloc(&[0; 8]), bits as u64)).collect();
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    let messages: Vec<_> = messages.iter().map(|(application, texts)| (*application, says(texts))).collect();
    rig.program(1, async move |b| {
        b.card.application(ApplicationConfig::new("other")).unwrap();
        for (bits, (application, (code, state))) in messages.into_iter().enumerate() {
            let (application, state) = (ApplicationId(application), State::Own(&state));
            let handlers = &payload(code);
            let cookie = b.card.attach_as(&Attach { handlers, application, state, memory: None }).unwrap();
            let me = entry(&b.alloc(&[0; 8]), bits as u64);
            b.append(Me { handlers: Some(cookie), ..me }).await.unwrap();
        }
        b.start().await;
        for _ in 0..count {
            b.event(EventKind::Put).await;
        }
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    rig.texts()
}

#[test]
fn a_handler_that_yields_is_the_last_of_the_queue() {
    // All three handlers are ready when the first handler prints.
    let messages: &[(u32, &[&str])] = &[(0, &["a", "A"]), (0, &["b", "B"]), (0, &["c"])];
    assert_eq!(said(&["hpu.parked=2"], messages), ["a", "b", "c", "A", "B"]);
    // With one slot for parked handlers, b can only be parked if a resumes. So c begins when a has ended.
    assert_eq!(said(&["hpu.parked=1"], messages), ["a", "b", "A", "c", "B"]);
    assert_eq!(said(&["hpu.parked=0"], messages), ["a", "A", "b", "B", "c"]);
}

#[test]
fn a_yield_without_other_handlers_returns_at_once() {
    assert_eq!(said(&[], &[(0, &["a", "b", "c"])]), ["a", "b", "c"]);
}

#[test]
fn by_weight_another_application_goes_on_until_it_is_level() {
    // All pieces take about the same time. After a, the application of x is behind. After x both applications are
    // level, and the earlier of b and the parked A runs first.
    let messages: &[(u32, &[&str])] = &[(0, &["a", "A"]), (0, &["b"]), (1, &["x", "X"]), (1, &["y"])];
    let order = said(&["hpu.parked=3", "hpu.scheduling=weighted-fair"], messages);
    let place = |text: &str| order.iter().position(|said| said == text).unwrap();
    assert_eq!(order.len(), 6);
    assert!(place("a") == 0 && place("x") == 1, "{order:?}");
    assert!(place("b") < place("A") && place("y") < place("X"), "{order:?}");
    // While both applications have work, neither is ever two pieces ahead.
    for k in 1..5 {
        let first = order[..k].iter().filter(|said| "aAb".contains(said.as_str())).count();
        assert!(first.abs_diff(k - first) <= 1, "{order:?}");
    }
}

#[test]
fn a_handler_that_spins_on_a_parked_one_lets_it_go_on() {
    // The first handler takes a lock, yields with the lock, and then releases it. The second handler spins on the lock
    // and yields.
    let take = Code::enter().spin(300).with(&[addi(T0, ZERO, 1), sw(T0, 0, S0)]).command(number::YIELD);
    let first = payload(take.with(&[sw(ZERO, 0, S0)]).returns(0));
    let second = Code::enter().with(&[addi(A7, ZERO, number::YIELD as i32), ecall(), lw(T0, 0, S0)]);
    let second = payload(second.with(&[bne(T0, ZERO, -8)]).returns(0));
    let mut rig = Rig::new(&["hpu.cores=1"]);
    rig.program(0, async |a| {
        let requests = [1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits));
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let lock = b.card.hpu_alloc(ApplicationId::default(), vec![0; 16]).unwrap();
        for (bits, handlers) in [(1, &first), (2, &second)] {
            let (application, state) = (ApplicationId::default(), State::Shared(lock));
            let cookie = b.card.attach_as(&Attach { handlers, application, state, memory: None }).unwrap();
            b.append(Me { handlers: Some(cookie), ..entry(&b.alloc(&[0; 8]), bits) }).await.unwrap();
        }
        b.start().await;
        for bits in [1, 2] {
            assert_eq!(b.event(EventKind::Put).await.match_bits, bits);
        }
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn a_reservation_does_not_outlast_a_yield() {
    for (parked, stored) in [("hpu.parked=0", 0), ("hpu.parked=1", 1)] {
        let reserve = Code::enter().spin(300).with(&[lr_w(T0, S0)]).command(number::YIELD);
        let handlers = payload(reserve.with(&[sc_w(T1, S0, S0), sw(T1, 4, S0)]).publish(8).returns(0));
        let mut rig = Rig::new(&["hpu.cores=1", parked]);
        rig.program(0, async |a| {
            let requests = [1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits));
            a.start().await;
            for request in &requests {
                a.put(request).await.unwrap();
            }
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&[0xee; 8]);
            b.append_with(entry(&memory, 1), &handlers, &[0; 8]).await.unwrap();
            b.append_with(entry(&b.alloc(&[0; 8]), 2), &spins(), &[]).await.unwrap();
            b.start().await;
            for _ in 0..2 {
                b.event(EventKind::Put).await;
            }
            assert_eq!(word(&b.read(&memory), 4), stored);
        });
        rig.run();
        assert_eq!(rig.failures(), []);
    }
}

/// Runs one handler for each list of spins. A handler yields between its spins. Returns the handlers' statistics, and
/// the end time of the last handler.
fn many(overrides: &[String], spins: &[Vec<u32>]) -> (HandlerStatistics, Time) {
    let overrides: Vec<_> = overrides.iter().map(String::as_str).collect();
    let mut rig = Rig::new(&overrides);
    let count = spins.len();
    rig.program(0, async move |a| {
        let requests: Vec<_> = (0..count).map(|bits| a.request(&a.alloc(&[0; 8]), bits as u64)).collect();
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    let bodies = spins.to_vec();
    let end = Rc::new(Cell::new(Time::ZERO));
    let note = end.clone();
    rig.program(1, async move |b| {
        let other = b.card.application(ApplicationConfig::new("other")).unwrap();
        for (bits, spins) in bodies.into_iter().enumerate() {
            let add = |code: Code, spin| code.spin(spin).command(number::YIELD);
            // The handler's stack keeps a private word across every yield.
            let kept = [addi(T0, ZERO, bits as i32 + 1), sw(T0, -64, SP)];
            let code = spins.into_iter().fold(Code::enter().with(&kept), add);
            let check = [lw(T0, -64, SP), addi(A0, T0, -(bits as i32) - 1)];
            let handlers = &payload(code.with(&check).with(&[ret()]));
            let application = if bits % 2 == 0 { ApplicationId::default() } else { other };
            let attach = Attach { handlers, application, state: State::Own(&[]), memory: None };
            let cookie = b.card.attach_as(&attach).unwrap();
            let me = entry(&b.alloc(&[0; 8]), bits as u64);
            b.append(Me { handlers: Some(cookie), ..me }).await.unwrap();
        }
        b.start().await;
        for _ in 0..count {
            b.event(EventKind::Put).await;
            note.set(b.sim.now());
        }
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    (rig.nodes[1].card.processors().handler_statistics(), end.get())
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(64))]

    // For any order of yields, all handlers end, keep their stacks, and use the same cycles as without yields. A core
    // that always has work ends at the same time.
    #[test]
    fn yielding_costs_nothing_and_loses_nothing(
        spins in prop::collection::vec(prop::collection::vec(1u32..60, 1..6), 1..10),
        cores in 1usize..4,
        parked in 1u32..5,
        fair in any::<bool>(),
    ) {
        let scheduling = if fair { "weighted-fair" } else { "first-come" };
        let overrides = |parked: u32| -> Vec<String> {
            let changed = format!("hpu.cores={cores} hpu.parked={parked} hpu.scheduling={scheduling}");
            ["host.post=0ns", "host.notice=0ns"].into_iter().chain(changed.split(' ')).map(String::from).collect()
        };
        let (without, alone) = many(&overrides(0), &spins);
        let (with, end) = many(&overrides(parked), &spins);
        prop_assert_eq!(with, without);
        prop_assert_eq!(with.runs, spins.len() as u64);
        if cores == 1 && spins.iter().all(|spins| spins.iter().sum::<u32>() > 40) {
            prop_assert_eq!(end, alone);
        }
    }
}
