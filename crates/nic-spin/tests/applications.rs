//! Applications on one card: memory, protection, budgets and accounting.

use crate::support::code::{Code, number, payload, program, result, word};
use crate::support::*;
use nicety_hpu::asm::*;
use nicety_nic_processors::{
    ApplicationConfig, ApplicationId, Attach, HandlerError, Handlers, HpuMemoryId, State, map,
};
use nicety_nic_spin::{CallError, Card};
use nicety_portals::{EventKind, FailType, Me, PutRequest};
use nicety_types::{Duration, NodeId, Path};
use std::cell::Cell;
use std::rc::Rc;

/// Returns handlers that add one to the first word of the state, and write the old value to host memory.
fn count() -> Handlers {
    let bump = Code::enter().with(&[addi(T0, ZERO, 1), amoadd_w(T1, T0, S0), sw(T1, 4, S0)]).returns(0);
    let show = Code::enter_completion().publish(8).returns(0);
    program(None, Some(bump), Some(show))
}

fn attached(card: &Card, handlers: &Handlers, application: ApplicationId, state: State<'_>) -> Option<u32> {
    Some(card.attach_as(&Attach { handlers, application, state, memory: None }).unwrap())
}

/// Rank 0 puts 8 bytes for each of these match bits. Each message is complete before the next one begins.
fn messages(rig: &Rig, match_bits: &'static [u64]) {
    rig.program(0, async move |a| {
        a.start().await;
        for &bits in match_bits {
            a.put(&a.request(&a.alloc(&[0; 8]), bits)).await.unwrap();
            a.sim.delay(Duration::from_us(20)).await;
        }
    });
}

#[test]
fn a_state_is_shared_by_those_that_name_it_and_by_no_others() {
    let mut rig = Rig::new(&[]);
    messages(&rig, &[1, 2, 3, 1, 4, 5, 4]);
    rig.program(1, async move |b| {
        let main = ApplicationId::default();
        let other = b.card.application(ApplicationConfig::new("other")).unwrap();
        let shared = b.card.hpu_alloc(main, vec![0; 16]).unwrap();
        // The second program differs from the first in its last instruction.
        let (one, two) = (
            count(),
            program(
                None,
                Some(
                    Code::enter()
                        .with(&[addi(T0, ZERO, 1), amoadd_w(T1, T0, S0), sw(T1, 4, S0), addi(T2, ZERO, 2)])
                        .returns(0),
                ),
                Some(Code::enter_completion().publish(8).returns(0)),
            ),
        );
        let handlers = [
            attached(&b.card, &one, main, State::Shared(shared)),
            attached(&b.card, &two, main, State::Shared(shared)),
            attached(&b.card, &one, main, State::Own(&[0; 16])),
            attached(&b.card, &one, other, State::Own(&[0; 16])),
        ];
        // The last entry has the handlers of the first entry, and so the same state.
        let handlers = [handlers[0], handlers[1], handlers[2], handlers[3], handlers[0]];
        let memories: Vec<_> = (0..5).map(|_| b.alloc(&[0xee; 8])).collect();
        for (i, memory) in memories.iter().enumerate() {
            b.append(Me { handlers: handlers[i], ..entry(memory, i as u64 + 1) }).await.unwrap();
        }
        b.start().await;
        for (i, before) in [(0, 0), (1, 1), (2, 0), (0, 2), (3, 0), (4, 3), (3, 1)] {
            b.event(EventKind::Put).await;
            assert_eq!(word(&b.read(&memories[i]), 4), before, "entry {i}");
        }
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}

#[test]
fn no_handler_reaches_a_state_that_is_not_its_own() {
    // Two states are adjacent. The handlers of the second state read the bytes of the first state, and then the bytes
    // after their own state.
    for (address, foreign) in [(map::STATE, false), (map::STATE, true), (map::STATE + 32, false)] {
        let mut rig = Rig::new(&[]);
        messages(&rig, &[2]);
        rig.program(1, async move |b| {
            let id = match foreign {
                true => b.card.application(ApplicationConfig::new("other")).unwrap(),
                false => ApplicationId::default(),
            };
            let read = payload(Code::new().set(T0, address).with(&[lw(A0, 0, T0)]).returns(0));
            attached(&b.card, &count(), ApplicationId::default(), State::Own(&[7; 16]));
            let handlers = attached(&b.card, &read, id, State::Own(&[9; 16]));
            b.append(Me { handlers, ..entry(&b.alloc(&[0; 8]), 2) }).await.unwrap();
            assert_eq!(b.event(EventKind::Put).await.fail, FailType::HandlerError);
        });
        rig.run();
        let text = rig.failures()[0].text.clone();
        assert!(text.contains(&format!("load of 4 bytes from {address:#x} outside")), "{text}");
        assert!(text.contains("the state (16 bytes at 0x14000010)"), "{text}");
    }
}

#[test]
fn a_stack_holds_nothing_of_another_application() {
    // The first handler leaves a word deep in the stack. The second handler copies this word into its state and writes
    // it to host memory.
    let leave = payload(Code::new().with(&[li(T0, 0x5ec2_e700)[0], sw(T0, -64, SP)]).returns(0));
    let look = Code::enter().with(&[lw(T0, -64, SP), sw(T0, 0, S0)]).returns(0);
    let look = program(None, Some(look), Some(Code::enter_completion().publish(4).returns(0)));
    for (same, expected) in [(true, 0x5ec2_e000), (false, 0)] {
        let (leave, look) = (leave.clone(), look.clone());
        let mut rig = Rig::new(&["hpu.cores=1"]);
        messages(&rig, &[1, 2]);
        rig.program(1, async move |b| {
            let main = ApplicationId::default();
            let id = match same {
                true => main,
                false => b.card.application(ApplicationConfig::new("other")).unwrap(),
            };
            let memory = b.alloc(&[0; 8]);
            let (one, two) = (
                attached(&b.card, &leave, main, State::Own(&[])),
                attached(&b.card, &look, id, State::Own(&[0; 16])),
            );
            b.append(Me { handlers: one, ..entry(&memory, 1) }).await.unwrap();
            b.append(Me { handlers: two, ..entry(&memory, 2) }).await.unwrap();
            b.event(EventKind::Put).await;
            b.event(EventKind::Put).await;
            assert_eq!(word(&b.read(&memory), 0) & 0xffff_f000, expected);
        });
        rig.run();
        assert_eq!(rig.failures(), []);
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, CallError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn hpu_memory_is_allocated_freed_and_accounted_for() {
    let mut rig = Rig::new(&["hpu.memory=1 KiB", "hpu.applications=3"]);
    rig.program(1, async move |b| {
        let card = &b.card;
        let config = ApplicationConfig { memory: Some(256), ..ApplicationConfig::new("small") };
        let (main, small) = (ApplicationId::default(), card.application(config).unwrap());
        let used = || card.applications().iter().map(|a| (a.memory_bytes, a.most_memory_bytes)).collect::<Vec<_>>();
        let first = card.hpu_alloc(main, vec![0; 500]).unwrap();
        let second = card.hpu_alloc(small, vec![0; 250]).unwrap();
        assert_eq!(used(), [(512, 512), (256, 256)]);
        assert_eq!(
            refused(card.hpu_alloc(small, vec![0; 1])),
            "application 'small' asked for 1 bytes of HPU memory, but its limit leaves 0; use less, free \
             some, or raise the limit"
        );
        let wanted = CallError::Handlers(HandlerError::NoMemory {
            application: "application 'default'".into(), wanted: 257, left: 256, largest: 256,
        });
        assert_eq!(card.hpu_alloc(main, vec![0; 257]), Err(wanted.clone()));
        assert_eq!(
            wanted.to_string(),
            "application 'default' asked for 257 bytes of HPU memory, but 256 are left on the card; use less, free \
             some, or raise hpu.memory"
        );
        card.hpu_free(first).unwrap();
        assert_eq!(used(), [(0, 512), (256, 256)]);
        assert!(refused(card.hpu_alloc(main, vec![0; 600])).contains("768 are left on the card, 512 in one piece"));
        assert!(refused(card.hpu_free(first)).contains("there is no HPU memory 0 on this card; it was freed"));
        assert!(refused(card.hpu_alloc(main, vec![])).contains("at least one byte"));

        // A state keeps its memory until its handlers are detached.
        let handlers = count();
        let attach = |state| card.attach_as(&Attach { handlers: &handlers, application: small, state, memory: None });
        let cookie = attach(State::Shared(second)).unwrap();
        assert!(refused(card.hpu_free(second)).contains("the state of 1 attached handlers; detach them first"));
        assert!(refused(attach(State::Own(&[0; 16]))).contains("application 'small' asked for 16 bytes"));
        let foreign = Attach { handlers: &handlers, application: main, state: State::Shared(second), memory: None };
        assert_eq!(
            refused(card.attach_as(&foreign)),
            "the HPU memory belongs to application 'small', the handlers to application 'default': \
             applications cannot share HPU memory"
        );
        assert!(refused(attach(State::Shared(HpuMemoryId(99)))).contains("there is no HPU memory 99"));
        let memory = b.alloc(&[0; 8]);
        b.append(Me { handlers: Some(cookie), ..entry(&memory, 5) }).await.unwrap();
        assert!(refused(card.detach(cookie)).contains("a match entry has these handlers"));
        card.hpu_free(card.hpu_alloc(main, vec![0; 16]).unwrap()).unwrap();

        let own = card.attach(&handlers, &[0; 100], None).unwrap();
        assert_eq!(used()[0], (112, 512));
        card.detach(own).unwrap();
        assert_eq!(used()[0], (0, 512));
        assert!(refused(card.detach(own)).contains("no handlers were attached under number 1"));
        assert_eq!(card.attach(&handlers, &[], None), Ok(own), "a number is used again");

        for (config, text) in [
            (ApplicationConfig::new(""), "an application has a name"),
            (ApplicationConfig::new("small"), "there is an application 'small' already"),
            (ApplicationConfig { weight: 0, ..ApplicationConfig::new("x") }, "'x': a weight is 1 to 1000000, not 0"),
            (ApplicationConfig { run_cycles: Some(0), ..ApplicationConfig::new("x") }, "at least one cycle"),
        ] {
            assert!(refused(card.application(config)).contains(text), "{text}");
        }
        card.application(ApplicationConfig::new("third")).unwrap();
        assert_eq!(
            refused(card.application(ApplicationConfig::new("fourth"))),
            "the card has room for 3 applications; use fewer, or raise hpu.applications"
        );
        let unknown = Attach { handlers: &handlers, application: ApplicationId(9), state: State::Own(&[]), memory: None };
        assert!(refused(card.attach_as(&unknown)).contains("there is no application 9"));
    });
    rig.run();
}

#[test]
fn all_applications_share_the_memory_of_the_card() {
    let mut rig = Rig::new(&[]);
    rig.program(1, async move |b| {
        let other = b.card.application(ApplicationConfig::new("other")).unwrap();
        b.card.attach(&count(), &vec![0; 600 << 10], None).unwrap();
        let (handlers, state) = (count(), vec![0; 600 << 10]);
        let attach = Attach { handlers: &handlers, application: other, state: State::Own(&state), memory: None };
        assert_eq!(
            refused(b.card.attach_as(&attach)),
            "application 'other' asked for 614400 bytes of HPU memory, but 434176 are left on the card; use less, free \
             some, or raise hpu.memory"
        );
    });
    rig.run();
}

/// Sets up two applications. The handlers of the first application loop for ever, and those of the second count.
async fn two(b: &Node, config: ApplicationConfig) -> nicety_host::Allocation {
    let first = b.card.application(config).unwrap();
    let memory = b.alloc(&[0; 8]);
    let spin = payload(Code::new().with(&[j(0)]));
    let handlers = attached(&b.card, &spin, first, State::Own(&[]));
    b.append(Me { handlers, ..entry(&b.alloc(&[0; 8]), 1) }).await.unwrap();
    let handlers = attached(&b.card, &count(), ApplicationId::default(), State::Own(&[0; 16]));
    b.append(Me { handlers, ..entry(&memory, 2) }).await.unwrap();
    b.start().await;
    memory
}

#[test]
fn a_budget_for_a_run_stops_that_run() {
    let mut rig = Rig::new(&[]);
    messages(&rig, &[1, 2, 1, 2]);
    rig.program(1, async move |b| {
        let config = ApplicationConfig { run_cycles: Some(5000), ..ApplicationConfig::new("looping") };
        let memory = two(&b, config).await;
        for before in 0..2 {
            let event = b.event(EventKind::Put).await;
            assert_eq!((event.match_bits, event.fail, event.mlength), (1, FailType::HandlerBudget, 0));
            let event = b.event(EventKind::Put).await;
            assert_eq!((event.match_bits, event.fail), (2, FailType::Ok));
            assert_eq!(word(&b.read(&memory), 4), before);
        }
        let reports = b.card.applications();
        let (other, looping) = (&reports[0], &reports[1]);
        // The handlers execute jumps of 2 cycles until the budget is used up.
        assert_eq!((looping.handlers.runs, looping.handlers.failed, looping.handlers.cycles), (2, 2, 10_000));
        assert_eq!((looping.handlers.instructions, looping.handlers.stalled, looping.refused), (5000, 0, 0));
        assert_eq!((other.handlers.runs, other.handlers.failed), (4, 0));
    });
    rig.run();
    let text = "payload handler stopped: the budget of application 'looping' is used up, 5000 cycles for a run, at pc \
                0x1d000000";
    let failures: Vec<_> = rig.failures().into_iter().map(|failure| (failure.text, failure.times)).collect();
    assert_eq!(failures, [(text.to_owned(), 2)]);
}

#[test]
fn a_budget_in_all_ends_an_application_and_no_other() {
    let mut rig = Rig::new(&[]);
    messages(&rig, &[1, 1, 2, 1, 2]);
    rig.program(1, async move |b| {
        let config = ApplicationConfig {
            run_cycles: Some(3000),
            total_cycles: Some(5000),
            ..ApplicationConfig::new("looping")
        };
        two(&b, config).await;
        for (bits, fail) in [
            (1, FailType::HandlerBudget),
            (1, FailType::HandlerBudget),
            (2, FailType::Ok),
            (1, FailType::HandlerBudget),
            (2, FailType::Ok),
        ] {
            let event = b.event(EventKind::Put).await;
            assert_eq!((event.match_bits, event.fail), (bits, fail));
        }
        let looping = &b.card.applications()[1];
        // The first run uses 3000 cycles, and the second run uses the remaining 2000. The third message is refused.
        assert_eq!((looping.handlers.runs, looping.handlers.cycles, looping.refused), (2, 5000, 1));
    });
    rig.run();
    let failures = rig.failures();
    assert_eq!(failures.len(), 2);
    assert!(failures[1].text.contains("is used up, 5000 cycles in all, at pc"), "{}", failures[1].text);
}

#[test]
fn runs_that_wait_when_the_budget_ends_are_refused() {
    // There is one processor. Three messages arrive before the first run ends.
    let mut rig = Rig::new(&["hpu.cores=1", "host.post=0 ns"]);
    rig.program(0, async move |a| {
        let requests: Vec<_> = [1, 1, 1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits)).into();
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let config = ApplicationConfig { total_cycles: Some(5000), ..ApplicationConfig::new("looping") };
        two(&b, config).await;
        for (bits, fail) in [(1, false), (1, false), (1, false), (2, true)] {
            let event = b.event(EventKind::Put).await;
            assert_eq!((event.match_bits, event.fail.is_ok()), (bits, fail));
        }
        let looping = &b.card.applications()[1];
        assert_eq!((looping.handlers.runs, looping.handlers.cycles, looping.refused), (1, 5000, 2));
    });
    rig.run();
    assert_eq!(rig.failures().len(), 1, "refused runs leave no failures of their own");
}

#[test]
fn a_message_is_refused_when_it_is_matched_and_waits_for_no_processor() {
    // When the last message arrives, the only processor is busy with another application for 160 us.
    let mut rig = Rig::new(&["hpu.cores=1"]);
    messages(&rig, &[1, 3]);
    rig.program(1, async move |b| {
        let long = payload(Code::enter().spin(100_000).returns(0));
        let handlers = attached(&b.card, &long, ApplicationId::default(), State::Own(&[]));
        b.append(Me { handlers, ..entry(&b.alloc(&[0; 8]), 3) }).await.unwrap();
        let config = ApplicationConfig { total_cycles: Some(5000), ..ApplicationConfig::new("looping") };
        two(&b, config).await;
        assert_eq!(b.event(EventKind::Put).await.match_bits, 1);
        b.sim.delay(Duration::from_us(20)).await;
        // Rank 1 sends to itself, because events of messages from one source come in order.
        b.put(&PutRequest { target: NodeId(1), ..b.request(&b.alloc(&[0; 8]), 1) }).await.unwrap();
        for (bits, ok, runs) in [(1, false, 1), (3, true, 2)] {
            let event = b.event(EventKind::Put).await;
            assert_eq!((event.match_bits, event.fail.is_ok()), (bits, ok));
            assert_eq!(
                (b.card.processors().handler_statistics().runs, b.card.applications()[1].refused),
                (runs, 1)
            );
        }
    });
    rig.run();
}

#[test]
fn cycles_that_a_handler_waits_are_stalls() {
    // The handler fetches 8 bytes. This takes two crossings of the bus (500 ns) and 125 ps for the bytes: 1251 cycles.
    let fetch = Code::enter().small(A0, 0).at(A1, 0).small(A2, 8).small(A3, 0).small(A4, 0);
    let handlers = payload(fetch.command(number::DMA_FROM_HOST).returns(result::SUCCESS));
    let mut rig = Rig::new(&[]);
    messages(&rig, &[1]);
    rig.program(1, async move |b| {
        b.append_with(entry(&b.alloc(&[0; 8]), 1), &handlers, &[0; 8]).await.unwrap();
        b.event(EventKind::Put).await;
        let handlers = b.card.processors().handler_statistics();
        assert_eq!((handlers.cycles - handlers.stalled, handlers.stalled), (10, 1251));
        assert_eq!(handlers, b.card.applications()[0].handlers);
    });
    rig.run();
}

/// Runs until ten looping runs of 10 000 cycles of the first application have ended. Returns the number of runs that
/// the second application has then completed, and the cycles of each application.
fn beside_a_looping_application(scheduling: &str) -> (u64, [u64; 2]) {
    let mut rig = Rig::new(&["hpu.cores=1", "host.post=0 ns", &format!("hpu.scheduling={scheduling}")]);
    rig.program(0, async move |a| {
        let requests = [1, 2].map(|bits| a.request(&a.alloc(&[0; 8]), bits));
        a.start().await;
        for _ in 0..60 {
            for request in &requests {
                a.put(request).await.unwrap();
            }
        }
    });
    let used = Rc::new(Cell::new((0, [0; 2])));
    let note = used.clone();
    rig.program(1, async move |b| {
        two(&b, ApplicationConfig { run_cycles: Some(10_000), ..ApplicationConfig::new("looping") }).await;
        let report = |index: usize| b.card.applications()[index].handlers;
        while report(1).runs < 10 {
            b.sim.delay(Duration::from_ns(100)).await;
        }
        note.set((report(0).runs, [report(0).cycles, report(1).cycles]));
    });
    rig.run();
    used.get()
}

#[test]
fn a_looping_application_does_not_starve_another_where_shares_are_fair() {
    // With first-come scheduling, about ten messages are done after ten looping runs. Each message has a payload
    // handler and a completion handler.
    let (runs, cycles) = beside_a_looping_application("first-come");
    assert!((9..=22).contains(&runs), "{runs}");
    assert_eq!(cycles[1], 100_000);
    // With weighted-fair scheduling, the other application needs far less than half of the time. So it waits for at
    // most one run.
    let (runs, cycles) = beside_a_looping_application("weighted-fair");
    assert!(runs >= 60, "{runs}");
    assert!(cycles[0] < cycles[1]);
}

#[test]
fn scheduling_by_weight_changes_nothing_for_one_application() {
    let end = |scheduling: &str| {
        let mut rig = Rig::new(&[&format!("hpu.scheduling={scheduling}")]);
        messages(&rig, &[1, 1, 1]);
        rig.program(1, async move |b| {
            b.append_with(entry(&b.alloc(&[0; 8]), 1), &count(), &[0; 8]).await.unwrap();
            for _ in 0..3 {
                b.event(EventKind::Put).await;
            }
        });
        rig.run()
    };
    assert_eq!(end("first-come"), end("weighted-fair"));
}

// A host puts a message to its own card to run a handler there, and shares the handler's state.
#[test]
fn a_host_writes_and_reads_what_its_handlers_have() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async move |a| {
        let main = ApplicationId::default();
        let shared = a.card.hpu_alloc(main, vec![0; 16]).unwrap();
        let memory = a.alloc(&[0; 8]);
        let handlers = attached(&a.card, &count(), main, State::Shared(shared));
        a.append(Me { handlers, ..entry(&memory, 1) }).await.unwrap();
        a.start().await;
        let mut path = Path::from(a.sim.now());
        // The card executes the commands in the order of their posts, so the handler finds 41.
        a.card.hpu_write(&a.cpus, &mut path, shared, 0, vec![41, 0, 0, 0]).await.unwrap();
        assert_eq!(a.sim.now(), after(65_000), "it costs the CPU o");
        assert_eq!(a.card.hpu_read(&a.cpus, &mut path, shared, 0, 16).await.unwrap()[..4], [41, 0, 0, 0]);
        // In ns: the posts take 65 each, and the request 250. The 16 bytes take 15.6 ps each and 250 for their return.
        // The notice takes 65.
        assert_eq!(a.sim.now(), after(65_000 + 65_000 + 250_000 + 250_250 + 65_000));
        assert_eq!(path.at(), a.sim.now());
        let request = PutRequest { target: NodeId(0), ..a.request(&a.alloc(&[0; 8]), 1) };
        a.put(&request).await.unwrap();
        a.event(EventKind::Put).await;
        let found = a.card.hpu_read(&a.cpus, &mut Path::from(a.sim.now()), shared, 0, 8).await.unwrap();
        assert_eq!((word(&found, 0), word(&found, 4)), (42, 41));
        let refused = async |offset, bytes| {
            let mut path = Path::from(a.sim.now());
            a.card.hpu_read(&a.cpus, &mut path, shared, offset, bytes).await.unwrap_err().to_string()
        };
        let outside = "1 bytes from offset 16 on are not in HPU memory of 16 bytes";
        assert_eq!(refused(16, 1).await, outside);
        assert!(refused(u64::MAX, 2).await.contains("are not in HPU memory"));
        let gone = a.card.hpu_write(&a.cpus, &mut path, HpuMemoryId(7), 0, vec![]).await.unwrap_err();
        assert!(gone.to_string().starts_with("there is no HPU memory 7"), "{gone}");
    });
    rig.run();
    assert_eq!(rig.failures(), []);
}
